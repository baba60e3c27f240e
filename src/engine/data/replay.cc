#include "engine/data/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/safetensors.h"

namespace portolan {
namespace {

tl::unexpected<Error> Wrong(const std::string& file, const std::string& tensor, const std::string& message) {
  return tl::make_unexpected(Error{ErrorCode::kInvalidValue, message, file, 0, tensor});
}

Result<Batch> ReadBatch(const SafetensorsFile& file, const std::string& path, int64_t index,
                        const BatchSchema& schema) {
  const std::string name = fmt::format("batch.{}.", index);
  Batch batch;
  const auto extent = [&](const std::string& part) {
    const std::vector<int64_t> shape = file.Shape(name + part);
    return shape.empty() ? int64_t{0} : shape[0];
  };
  batch.size = extent("labels");
  const auto features = static_cast<int64_t>(schema.features.size());
  if (batch.size < 1) return Wrong(path, name + "labels", "must hold a label or more");
  batch.dense.resize(static_cast<size_t>(batch.size * schema.dense_width));
  batch.labels.resize(static_cast<size_t>(batch.size));
  batch.ids.resize(static_cast<size_t>(extent("ids")));
  batch.offsets.resize(static_cast<size_t>(features * batch.size + 1));
  const auto read = [&](const char* part, const char* dtype, std::vector<int64_t> shape, auto& values) {
    return file.Read(
        {name + part, dtype, std::move(shape), values.data(), static_cast<int64_t>(values.size() * sizeof(values[0]))});
  };
  PORTOLAN_RETURN_IF_ERROR(read("dense", "F32", {batch.size, schema.dense_width}, batch.dense));
  PORTOLAN_RETURN_IF_ERROR(read("labels", "F32", {batch.size}, batch.labels));
  PORTOLAN_RETURN_IF_ERROR(read("ids", "I64", {static_cast<int64_t>(batch.ids.size())}, batch.ids));
  PORTOLAN_RETURN_IF_ERROR(read("offsets", "I64", {features * batch.size + 1}, batch.offsets));
  for (const float label : batch.labels) {
    if (!(label >= 0 && label <= 1)) return Wrong(path, name + "labels", fmt::format("must be 0 to 1, got {}", label));
  }
  if (batch.offsets.front() != 0 || batch.offsets.back() != static_cast<int64_t>(batch.ids.size()) ||
      !std::is_sorted(batch.offsets.begin(), batch.offsets.end())) {
    return Wrong(path, name + "offsets", "must ascend from 0 to the number of ids");
  }
  for (int64_t f = 0; f < features; ++f) {
    for (int64_t i = batch.offsets[f * batch.size]; i < batch.offsets[(f + 1) * batch.size]; ++i) {
      if (batch.ids[i] >= 0 && batch.ids[i] < schema.features[f].rows) continue;
      return Wrong(path, name + "ids",
                   fmt::format("feature {} has rows 0 to {}, got {} at {}", schema.features[f].name,
                               schema.features[f].rows - 1, batch.ids[i], i));
    }
  }
  return batch;
}

class Replay : public Reader {
 public:
  explicit Replay(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  Result<ReadOutcome> Next(int64_t size, Batch* batch) override {
    const Batch& whole = batches_[static_cast<size_t>(next_) % batches_.size()];
    ++next_;
    if (whole.size <= size) {
      *batch = whole;
      return ReadOutcome::kBatch;
    }
    *batch = {};
    batch->size = size;
    const size_t width = whole.dense.size() / static_cast<size_t>(whole.size);
    batch->dense.assign(whole.dense.begin(), whole.dense.begin() + static_cast<int64_t>(width) * size);
    batch->labels.assign(whole.labels.begin(), whole.labels.begin() + size);
    batch->offsets = {0};
    for (size_t first = 0; first + 1 < whole.offsets.size(); first += static_cast<size_t>(whole.size)) {
      for (size_t b = first; b < first + static_cast<size_t>(size); ++b) {
        batch->ids.insert(batch->ids.end(), whole.ids.begin() + whole.offsets[b],
                          whole.ids.begin() + whole.offsets[b + 1]);
        batch->offsets.push_back(static_cast<int64_t>(batch->ids.size()));
      }
    }
    return ReadOutcome::kBatch;
  }
  std::string Position() const override { return std::to_string(next_); }
  int64_t Cycle() const override { return static_cast<int64_t>(batches_.size()); }
  Status Restore(const std::string& position) override {
    long long next = 0;
    if (!ParseInt64(position, &next) || next < 0) {
      return MakeError(ErrorCode::kInvalidValue, "'" + position.substr(0, 40) + "' is not a position of batches");
    }
    next_ = next;
    return {};
  }

 private:
  std::vector<Batch> batches_;
  int64_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Reader>> OpenReplay(const YamlValue& data, const BatchSchema& schema) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, data.Map());
  map.OneOf("type", {"batches"});
  const std::string path = map.String("file");
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  PORTOLAN_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<Batch> batches;
  for (int64_t i = 0; file.Has(fmt::format("batch.{}.labels", i)); ++i) {
    PORTOLAN_ASSIGN_OR_RETURN(Batch batch, ReadBatch(file, path, i, schema));
    batches.push_back(std::move(batch));
  }
  if (batches.empty()) return Wrong(path, "batch.0.labels", "is not in the file");
  return std::make_unique<Replay>(std::move(batches));
}

}  // namespace portolan
