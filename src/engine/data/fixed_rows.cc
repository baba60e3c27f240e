#include "engine/data/fixed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/data/shown_field.h"

namespace portolan {
namespace {

// Read at a time, all arrays together.
constexpr int64_t kChunkBytes = 1 << 20;
constexpr int kLabelColumn = 1;

class FixedRows : public SampleSource {
 public:
  FixedRows(FixedLayout layout, const FixedOptions& options, const BatchSchema& schema, PolicyBook policies)
      : SampleSource(std::move(policies)), layout_(std::move(layout)), options_(options), dense_(schema.dense_width) {
    for (const BatchSchema::Feature& feature : schema.features) ids_.emplace_back(options.ids, feature.rows);
    for (const FixedField& field : layout_.features) {
      if (field.width != 1) bags_ = Bags::kVariable;
    }
  }

  Bags bags() const override { return bags_; }
  SourcePosition Position() const override { return {part_, row_}; }
  SourcePosition Start() const override { return {0, layout_.parts.empty() ? 0 : layout_.parts[0].begin}; }

  Status Seek(SourcePosition position) override {
    const int64_t parts = std::ssize(layout_.parts);
    const bool end = position.part == parts && position.offset == 0;
    if (!end && (position.part < 0 || position.part >= parts || position.offset < layout_.parts[position.part].begin ||
                 position.offset > layout_.parts[position.part].end)) {
      return MakeError(ErrorCode::kInvalidValue, "the position lies outside the data files");
    }
    part_ = position.part;
    row_ = position.offset;
    return OpenPart();
  }

  Status Read(int64_t count, SampleRows* rows) override {
    const int64_t end = rows->size + count;
    while (rows->size < end && part_ < std::ssize(layout_.parts)) {
      const FixedLayout::Part& part = layout_.parts[part_];
      if (row_ == part.end) {
        const int64_t next = part_ + 1;
        PORTOLAN_RETURN_IF_ERROR(Seek({next, next < std::ssize(layout_.parts) ? layout_.parts[next].begin : 0}));
        continue;
      }
      const int64_t chunk = std::min({end - rows->size, part.end - row_, chunk_rows_});
      for (size_t i = 0; i < files_.size(); ++i) {
        const int64_t bytes = part.arrays[i].row_bytes;
        PORTOLAN_RETURN_IF_ERROR(
            files_[i].ReadAt(part.arrays[i].offset + row_ * bytes, chunk * bytes, blocks_[i].data()));
      }
      for (int64_t i = 0; i < chunk; ++i, ++row_) {
        rows->Reserve(1);
        const size_t ids_before = rows->ids.size();
        PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, ParseRow(i, rows));
        Settle(outcome, ids_before, rows);
      }
    }
    return {};
  }

  Status OpenPart() {
    files_.clear();
    blocks_.clear();
    if (part_ == std::ssize(layout_.parts)) return {};
    int64_t sample_bytes = 1;
    for (const FixedArray& array : layout_.parts[part_].arrays) sample_bytes += array.row_bytes;
    chunk_rows_ = std::max<int64_t>(1, kChunkBytes / sample_bytes);
    for (const FixedArray& array : layout_.parts[part_].arrays) {
      PORTOLAN_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(array.path));
      files_.push_back(std::move(file));
      blocks_.emplace_back(static_cast<size_t>(chunk_rows_ * array.row_bytes));
    }
    return {};
  }

 private:
  const char* FieldBytes(const FixedField& field, int64_t in_chunk) const {
    return blocks_[field.array].data() + in_chunk * layout_.parts[part_].arrays[field.array].row_bytes + field.offset;
  }

  static double Number(const FixedField& field, const char* bytes, int64_t i) {
    const auto load = [&](auto value) {
      std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
      return static_cast<double>(value);
    };
    switch (field.type) {
      case ElementType::kInt32:
        return load(int32_t{});
      case ElementType::kInt64:
        return load(int64_t{});
      case ElementType::kFloat32:
        return load(float{});
      case ElementType::kFloat64:
        break;
    }
    return load(double{});
  }

  static int64_t Integer(const FixedField& field, const char* bytes, int64_t i) {
    if (field.type == ElementType::kInt64) {
      int64_t value;
      std::memcpy(&value, bytes + i * 8, sizeof(value));
      return value;
    }
    int32_t value;
    std::memcpy(&value, bytes + i * 4, sizeof(value));
    return value;
  }

  Result<RowOutcome> Judge(int column, FieldProblem problem, const FixedField& field, double value,
                           const std::string& accepted) {
    if (const std::optional<RowOutcome> judged = policies_.Judge(column, problem)) return *judged;
    return tl::make_unexpected(
        Error{ErrorCode::kInvalidValue,
              fmt::format("sample {}: {}", row_, ProblemText(problem, fmt::format("{}", value), accepted)),
              layout_.parts[part_].arrays[field.array].path, 0, policies_.Name(column)});
  }

  Result<RowOutcome> ParseRow(int64_t in_chunk, SampleRows* rows) {
    const int64_t at = rows->size;
    const double label = Number(layout_.label, FieldBytes(layout_.label, in_chunk), 0);
    rows->labels[at] = static_cast<float>(label);
    if (!(label >= 0 && label <= 1)) {
      rows->labels[at] = label > 1 ? 1.0F : 0.0F;
      const FieldProblem problem = std::isfinite(label) ? FieldProblem::kOutOfRange : FieldProblem::kBadValue;
      PORTOLAN_ASSIGN_OR_RETURN(const RowOutcome outcome, Judge(kLabelColumn, problem, layout_.label, label, "0 to 1"));
      if (outcome == RowOutcome::kSkipped) return outcome;
    }
    const char* bytes = dense_ > 0 ? FieldBytes(layout_.dense, in_chunk) : nullptr;
    for (int64_t i = 0; i < dense_; ++i) {
      const double value = Number(layout_.dense, bytes, i);
      float kept = static_cast<float>(value);  // beyond float32 it is infinite, and refused
      if (!std::isfinite(kept) || (kept < 0 && options_.transform == DenseTransform::kLog1p)) {
        const bool finite = std::isfinite(kept);
        PORTOLAN_ASSIGN_OR_RETURN(
            const RowOutcome outcome,
            Judge(static_cast<int>(kLabelColumn + 1 + i), finite ? FieldProblem::kNegative : FieldProblem::kBadValue,
                  layout_.dense, value, finite ? "at least 0 for log(x + 1)" : "a finite number of float32"));
        if (outcome == RowOutcome::kSkipped) return outcome;
        kept = 0;
      }
      rows->dense[at * dense_ + i] = Transformed(options_.transform, kept);
    }
    return ParseIds(in_chunk, rows);
  }

  Result<RowOutcome> ParseIds(int64_t in_chunk, SampleRows* rows) {
    const int64_t features = std::ssize(layout_.features);
    for (int64_t f = 0; f < features; ++f) {
      const FixedField& field = layout_.features[f];
      const char* bytes = FieldBytes(field, in_chunk);
      for (int64_t i = 0; i < field.width; ++i) {
        const int64_t number = Integer(field, bytes, i);
        int64_t id = 0;
        if (!ids_[f].Map(number, &id)) {
          const FieldProblem problem = number < 0 ? FieldProblem::kNegative : FieldProblem::kOutOfRange;
          id = number < 0 ? 0 : ids_[f].rows() - 1;
          PORTOLAN_ASSIGN_OR_RETURN(
              const RowOutcome outcome,
              Judge(static_cast<int>(kLabelColumn + 1 + dense_ + f), problem, field, static_cast<double>(number),
                    fmt::format("0 to {} (rows - 1)", ids_[f].rows() - 1)));
          if (outcome == RowOutcome::kSkipped) return outcome;
        }
        if (bags_ == Bags::kOneEach) {
          rows->ids[rows->size * features + f] = id;
        } else {
          rows->ids.push_back(id);
        }
      }
      if (bags_ == Bags::kVariable) rows->ends[rows->size * features + f] = std::ssize(rows->ids);
    }
    return RowOutcome::kKept;
  }

  FixedLayout layout_;
  FixedOptions options_;
  int64_t dense_;
  std::vector<IdMap> ids_;
  Bags bags_ = Bags::kOneEach;
  std::vector<InputFile> files_;           // of the part
  std::vector<std::vector<char>> blocks_;  // of chunk_rows_ rows of each
  int64_t chunk_rows_ = 1;
  int64_t part_ = 0, row_ = 0;
};

}  // namespace

PolicyBook FixedRowPolicies(const BatchSchema& schema) {
  PolicyBook policies;
  policies.Add("label");
  for (int64_t i = 0; i < schema.dense_width; ++i) policies.Add(fmt::format("dense{}", i));
  for (const BatchSchema::Feature& feature : schema.features) policies.Add(feature.name);
  return policies;
}

Result<std::unique_ptr<SampleSource>> OpenFixedRows(FixedLayout layout, const FixedOptions& options,
                                                    const BatchSchema& schema, PolicyBook policies) {
  auto source = std::make_unique<FixedRows>(std::move(layout), options, schema, std::move(policies));
  PORTOLAN_RETURN_IF_ERROR(source->Seek(source->Start()));
  return source;
}

}  // namespace portolan
