#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/data/fixed_rows.h"

namespace portolan {
namespace {

constexpr int64_t kWordBytes = 4;

// A layout of one array: label, dense, then the features' ids, all of 4 bytes.
Result<FixedLayout> PackedLayout(const std::vector<std::string>& paths, const BatchSchema& schema, ElementType label,
                                 ElementType dense, const std::vector<int64_t>& hotness) {
  FixedLayout layout;
  layout.label = {0, 0, label, 1};
  layout.dense = {0, kWordBytes, dense, schema.dense_width};
  int64_t words = 1 + schema.dense_width;
  for (const int64_t width : hotness) {
    layout.features.push_back({0, words * kWordBytes, ElementType::kInt32, width});
    words += width;
  }
  const int64_t row_bytes = words * kWordBytes;
  for (const std::string& path : paths) {
    PORTOLAN_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
    if (file.size() % row_bytes != 0) {
      return tl::make_unexpected(Error{
          ErrorCode::kParse,
          fmt::format("{} bytes are no whole number of samples of {} bytes (label, {} dense, {} ids; 4 bytes each): "
                      "cut off, or not this model's",
                      file.size(), row_bytes, schema.dense_width, words - 1 - schema.dense_width),
          path,
          0,
          {}});
    }
    layout.parts.push_back({{{path, 0, row_bytes}}, 0, file.size() / row_bytes});
  }
  return layout;
}

tl::unexpected<Error> ArrayError(const ArrayInFile& array, const std::string& message) {
  const std::string place = array.member.empty() ? "" : fmt::format("member '{}': ", array.member);
  return tl::make_unexpected(Error{ErrorCode::kInvalidValue, place + message, array.path, 0, {}});
}

Result<std::vector<ArrayInFile>> OpenSparse(const NpyDay& day, const BatchSchema& schema) {
  std::vector<ArrayInFile> arrays;
  if (day.sparse.ends_with(".npz")) {
    for (size_t f = 0; f < schema.features.size(); ++f) {
      PORTOLAN_ASSIGN_OR_RETURN(arrays.emplace_back(), OpenNpzMember(day.sparse, std::to_string(f)));
    }
    return arrays;
  }
  PORTOLAN_ASSIGN_OR_RETURN(arrays.emplace_back(), OpenNpy(day.sparse));
  if (arrays[0].columns != std::ssize(schema.features)) {
    return ArrayError(arrays[0],
                      fmt::format("has {} columns, the model {} features", arrays[0].columns, schema.features.size()));
  }
  return arrays;
}

bool IsInteger(ElementType type) { return type == ElementType::kInt32 || type == ElementType::kInt64; }

bool SameField(const FixedField& a, const FixedField& b) {
  return a.array == b.array && a.offset == b.offset && a.type == b.type && a.width == b.width;
}

}  // namespace

Result<FixedLayout> DlrmBinaryLayout(const std::vector<std::string>& paths, const BatchSchema& schema) {
  return PackedLayout(paths, schema, ElementType::kInt32, ElementType::kInt32,
                      std::vector<int64_t>(schema.features.size(), 1));
}

Result<FixedLayout> HugeCtrRawLayout(const std::vector<std::string>& paths, const BatchSchema& schema,
                                     ElementType label, const std::vector<int64_t>& hotness) {
  PORTOLAN_CHECK(ElementBytes(label) == kWordBytes, "a label of 4 bytes");
  PORTOLAN_CHECK(hotness.size() == schema.features.size(), "one hotness a feature");
  return PackedLayout(paths, schema, label, ElementType::kFloat32, hotness);
}

Result<FixedLayout> NpyLayout(const std::vector<NpyDay>& days, const BatchSchema& schema) {
  FixedLayout layout;
  for (const NpyDay& day : days) {
    FixedLayout here;
    PORTOLAN_ASSIGN_OR_RETURN(const ArrayInFile labels, OpenNpy(day.labels));
    if (labels.columns != 1) return ArrayError(labels, fmt::format("labels have 1 column, not {}", labels.columns));
    std::vector<ArrayInFile> arrays{labels};
    here.label = {0, 0, labels.type, 1};
    if (schema.dense_width > 0) {
      PORTOLAN_ASSIGN_OR_RETURN(arrays.emplace_back(), OpenNpy(day.dense));
      if (arrays[1].columns != schema.dense_width) {
        return ArrayError(
            arrays[1], fmt::format("has {} columns, the model {} dense values", arrays[1].columns, schema.dense_width));
      }
      here.dense = {1, 0, arrays[1].type, schema.dense_width};
    }
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<ArrayInFile> sparse, OpenSparse(day, schema));
    for (size_t i = 0; i < sparse.size(); ++i) {
      if (!IsInteger(sparse[i].type)) return ArrayError(sparse[i], "ids are int32 or int64, not floating-point");
      const bool table = !day.sparse.ends_with(".npz");
      const int array = static_cast<int>(arrays.size());
      const int64_t step = ElementBytes(sparse[i].type);
      for (int64_t f = 0; table && f < sparse[i].columns; ++f) {
        here.features.push_back({array, f * step, sparse[i].type, 1});
      }
      if (!table) here.features.push_back({array, 0, sparse[i].type, sparse[i].columns});
      arrays.push_back(sparse[i]);
    }
    FixedLayout::Part part;
    for (const ArrayInFile& array : arrays) {
      if (array.rows != labels.rows) {
        return ArrayError(array, fmt::format("has {} rows, '{}' has {}", array.rows, labels.path, labels.rows));
      }
      part.arrays.push_back({array.path, array.offset, array.columns * ElementBytes(array.type)});
    }
    part.end = labels.rows;
    const bool same =
        layout.parts.empty() || (SameField(layout.label, here.label) && SameField(layout.dense, here.dense) &&
                                 std::equal(layout.features.begin(), layout.features.end(), here.features.begin(),
                                            here.features.end(), SameField));
    if (!same) return ArrayError(labels, "the arrays of this day have other types or widths than those of the first");
    here.parts = std::move(layout.parts);
    here.parts.push_back(std::move(part));
    layout = std::move(here);
  }
  return layout;
}

FixedLayout SplitLayout(FixedLayout* layout, double eval_fraction) {
  FixedLayout eval = *layout;
  eval.parts.clear();
  int64_t total = 0;
  for (const FixedLayout::Part& part : layout->parts) total += part.end;
  int64_t cut = total - std::min(total, static_cast<int64_t>(std::llround(eval_fraction * static_cast<double>(total))));
  std::vector<FixedLayout::Part> train;
  for (const FixedLayout::Part& part : layout->parts) {
    const int64_t here = std::clamp<int64_t>(cut, 0, part.end);
    cut -= part.end;
    if (here > 0) train.push_back({part.arrays, 0, here});
    if (here < part.end) eval.parts.push_back({part.arrays, here, part.end});
  }
  layout->parts = std::move(train);
  return eval;
}

}  // namespace portolan
