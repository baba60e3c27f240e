#include "engine/data/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "engine/data/random_order.h"

namespace portolan {
namespace {

// Samples read and turned at a time: with 26 features their ids take 13 KiB and stay in the first-level cache.
constexpr int64_t kTurnedSamples = 64;
// A batch larger than this would be a mistake, and is refused before memory is taken for it.
constexpr int64_t kMaxBatch = int64_t{1} << 28;

// ids[feature * stride + at + sample] of the batch from rows of one id each.
void TurnOneEach(const SampleRows& rows, int64_t at, int64_t stride, Batch* batch) {
  if (rows.size == 0) return;  // there may be no memory to point into
  const int64_t features = rows.features;
  for (int64_t f = 0; f < features; ++f) {
    const int64_t* from = rows.ids.data() + f;
    int64_t* to = batch->ids.data() + f * stride + at;
    for (int64_t i = 0; i < rows.size; ++i) to[i] = from[i * features];
  }
}

// Offsets of `bags` bags of one id. Those of the batch before are nearly always the same: reading them is cheaper than
// writing.
void CountOffsets(int64_t bags, Batch* batch) {
  batch->offsets.resize(bags + 1);
  int64_t* const offsets = batch->offsets.data();
  int64_t same = 0;
  while (same <= bags && offsets[same] == same) ++same;
  std::iota(offsets + same, offsets + bags + 1, same);
}

void CopyDense(const SampleRows& rows, int64_t at, Batch* batch) {
  std::copy_n(rows.labels.begin(), rows.size, batch->labels.begin() + at);
  std::copy_n(rows.dense.begin(), rows.size * rows.dense_width, batch->dense.begin() + at * rows.dense_width);
}

void ClearBatch(Batch* batch) {
  batch->size = 0;
  for (std::vector<float>* floats : {&batch->dense, &batch->labels, &batch->id_weights, &batch->sample_weights}) {
    floats->clear();
  }
  batch->ids.clear();
  batch->offsets.assign(1, 0);
}

}  // namespace

void SampleRows::Reserve(int64_t count) {
  const size_t samples = static_cast<size_t>(size + count);
  if (labels.size() < samples) labels.resize(samples);
  if (dense.size() < samples * dense_width) dense.resize(samples * dense_width);
  if (bags == Bags::kOneEach && ids.size() < samples * features) ids.resize(samples * features);
  if (bags == Bags::kVariable && ends.size() < samples * features) ends.resize(samples * features);
}

void SampleRows::Append(const SampleRows& from, int64_t sample) {
  Reserve(1);
  labels[size] = from.labels[sample];
  std::copy_n(from.dense.begin() + sample * dense_width, dense_width, dense.begin() + size * dense_width);
  if (bags == Bags::kOneEach) {
    std::copy_n(from.ids.begin() + sample * features, features, ids.begin() + size * features);
  } else {
    const int64_t begin = from.BagBegin(sample, 0);
    const int64_t shift = std::ssize(ids) - begin;
    for (int64_t f = 0; f < features; ++f) ends[size * features + f] = from.ends[sample * features + f] + shift;
    const int64_t end = features == 0 ? begin : from.ends[sample * features + features - 1];
    ids.insert(ids.end(), from.ids.begin() + begin, from.ids.begin() + end);
  }
  ++size;
}

void FillBatch(const SampleRows& rows, Batch* batch) {
  const int64_t size = rows.size;
  batch->size = size;
  batch->id_weights.clear();
  batch->sample_weights.clear();
  batch->labels.resize(size);
  batch->dense.resize(size * rows.dense_width);
  CopyDense(rows, 0, batch);
  batch->ids.resize(rows.bags == Bags::kOneEach ? rows.features * size : std::ssize(rows.ids));
  if (rows.bags == Bags::kOneEach) {
    TurnOneEach(rows, 0, size, batch);
    CountOffsets(rows.features * size, batch);
    return;
  }
  batch->offsets.resize(rows.features * size + 1);
  int64_t filled = 0;
  for (int64_t f = 0; f < rows.features; ++f) {
    for (int64_t i = 0; i < size; ++i) {
      batch->offsets[f * size + i] = filled;
      const int64_t begin = rows.BagBegin(i, f);
      const int64_t end = rows.ends[i * rows.features + f];
      std::copy(rows.ids.begin() + begin, rows.ids.begin() + end, batch->ids.begin() + filled);
      filled += end - begin;
    }
  }
  batch->offsets[rows.features * size] = filled;
}

SampleReader::SampleReader(std::unique_ptr<SampleSource> source, const BatchSchema& schema, SampleOrder order,
                           const std::string& identity)
    : source_(std::move(source)),
      order_(order),
      rows_(schema.dense_width, std::ssize(schema.features), source_->bags()),
      window_(schema.dense_width, std::ssize(schema.features), source_->bags()) {
  PORTOLAN_CHECK(order.shuffle_window >= 0 && order.epochs >= 1, "checked where they are read");
  std::string all = fmt::format("{}|{}|{}|{}", identity, order.shuffle_window, order.seed, schema.dense_width);
  for (const BatchSchema::Feature& feature : schema.features) all += fmt::format("|{}:{}", feature.name, feature.rows);
  identity_ = HashBytes(all.data(), all.size());
  place_.source = source_->Position();
}

Result<ReadOutcome> SampleReader::Next(int64_t size, Batch* batch) {
  if (size < 1 || size > kMaxBatch) {
    ClearBatch(batch);
    return MakeError(ErrorCode::kInvalidValue, fmt::format("a batch of {} samples; must be 1 to {}", size, kMaxBatch));
  }
  if (failed_) failed_ = Fill(size, batch);
  if (!failed_) {
    ClearBatch(batch);
    return tl::make_unexpected(failed_.error());
  }
  if (batch->size > 0) return ReadOutcome::kBatch;
  ClearBatch(batch);
  return ReadOutcome::kEnd;
}

Status SampleReader::Fill(int64_t size, Batch* batch) {
  rows_.Clear();
  batch->id_weights.clear();
  batch->sample_weights.clear();
  if (order_.shuffle_window > 0 || source_->bags() == Bags::kVariable) {
    PORTOLAN_RETURN_IF_ERROR(order_.shuffle_window > 0 ? ReadShuffled(size) : ReadOrdered(size));
    FillBatch(rows_, batch);
    return {};
  }
  const int64_t features = rows_.features;
  const int64_t dense = rows_.dense_width;
  // Memory grows with what the data really holds: a batch of 2^28 samples over a file of ten must not take 60 GB.
  int64_t filled = 0, stride = 0;
  while (filled < size) {
    rows_.Clear();
    PORTOLAN_RETURN_IF_ERROR(ReadOrdered(std::min(kTurnedSamples, size - filled)));
    if (rows_.size == 0) break;
    if (filled + rows_.size > stride) {
      const int64_t wider = std::min(size, std::max<int64_t>(2 * stride, 1 << 17));
      batch->labels.resize(wider);
      batch->dense.resize(wider * dense);
      batch->ids.resize(wider * features);
      for (int64_t f = features - 1; f > 0; --f) {
        std::copy_backward(batch->ids.begin() + f * stride, batch->ids.begin() + f * stride + filled,
                           batch->ids.begin() + f * wider + filled);
      }
      stride = wider;
    }
    CopyDense(rows_, filled, batch);
    TurnOneEach(rows_, filled, stride, batch);
    filled += rows_.size;
  }
  for (int64_t f = 1; f < features && filled < stride; ++f) {
    std::copy_n(batch->ids.begin() + f * stride, filled, batch->ids.begin() + f * filled);
  }
  batch->size = filled;
  batch->labels.resize(filled);
  batch->dense.resize(filled * dense);
  batch->ids.resize(filled * features);
  CountOffsets(filled * features, batch);
  return {};
}

Result<bool> SampleReader::NextEpoch() {
  if (place_.epoch + 1 >= order_.epochs || epoch_samples_ == 0) return false;
  PORTOLAN_RETURN_IF_ERROR(source_->Seek(source_->Start()));
  ++place_.epoch;
  place_.window = place_.used = 0;
  place_.source = source_->Position();
  epoch_samples_ = 0;
  return true;
}

Status SampleReader::ReadOrdered(int64_t count) {
  while (rows_.size < count) {
    const int64_t before = rows_.size;
    PORTOLAN_RETURN_IF_ERROR(source_->Read(count - before, &rows_));
    place_.source = source_->Position();
    epoch_samples_ += rows_.size - before;
    if (rows_.size == count) break;
    PORTOLAN_ASSIGN_OR_RETURN(const bool more, NextEpoch());
    if (!more) break;
  }
  return {};
}

Status SampleReader::ReadWindow() {
  while (true) {
    window_.Clear();
    place_.source = source_->Position();
    PORTOLAN_RETURN_IF_ERROR(source_->Read(order_.shuffle_window, &window_));
    epoch_samples_ += window_.size;
    if (window_.size > 0) break;
    PORTOLAN_ASSIGN_OR_RETURN(const bool more, NextEpoch());
    if (!more) break;
  }
  const uint64_t seed =
      MixBits(MixBits(order_.seed + static_cast<uint64_t>(place_.epoch)) ^ static_cast<uint64_t>(place_.window));
  permutation_ = RandomOrder(window_.size, seed);
  window_read_ = true;
  return {};
}

Status SampleReader::ReadShuffled(int64_t count) {
  while (rows_.size < count) {
    if (!window_read_) PORTOLAN_RETURN_IF_ERROR(ReadWindow());
    if (window_.size == 0) break;
    if (place_.used == window_.size) {
      ++place_.window;
      place_.used = 0;
      place_.source = source_->Position();
      window_read_ = false;
      continue;
    }
    rows_.Append(window_, permutation_[place_.used]);
    ++place_.used;
  }
  return {};
}

std::string SampleReader::Position() const {
  return fmt::format("data={:016x} epoch={} window={} used={} part={} offset={}", identity_, place_.epoch,
                     place_.window, place_.used, place_.source.part, place_.source.offset);
}

Status SampleReader::Restore(const std::string& position) {
  const auto error = [&](const std::string& why) {
    return MakeError(ErrorCode::kInvalidValue, fmt::format("data position '{}': {}", position.substr(0, 120), why));
  };
  constexpr const char* kFormat = "must be 'data=HEX epoch=N window=N used=N part=N offset=N'";
  const std::vector<std::string> words = Split(position, ' ');
  const char* keys[] = {"data=", "epoch=", "window=", "used=", "part=", "offset="};
  long long values[6] = {};
  if (words.size() != std::size(keys)) return error(kFormat);
  for (size_t i = 0; i < std::size(keys); ++i) {
    if (!words[i].starts_with(keys[i])) return error(kFormat);
    const std::string text = words[i].substr(std::string(keys[i]).size());
    if (i == 0) {
      if (text != fmt::format("{:016x}", identity_)) {
        return error("belongs to other data files, another order, policy or another model");
      }
    } else if (!ParseInt64(text, &values[i]) || values[i] < 0) {
      return error(kFormat);
    }
  }
  if (values[1] >= order_.epochs) {
    return error(fmt::format("epoch {} of {}, counted from 0", values[1], order_.epochs));
  }
  if (values[3] > order_.shuffle_window) return error("has used more samples than a shuffle window holds");
  PORTOLAN_RETURN_IF_ERROR(source_->Seek({values[4], values[5]}));
  source_->ResetCounts();
  place_ = {values[1], values[2], values[3], {values[4], values[5]}};
  failed_ = {};
  window_read_ = false;
  // Whether the epoch held samples before this place is not known; that it does is what a position inside it says.
  const SourcePosition start = source_->Start();
  epoch_samples_ = values[4] != start.part || values[5] != start.offset ? 1 : 0;
  if (place_.used == 0) return {};
  const int64_t used = place_.used;
  PORTOLAN_RETURN_IF_ERROR(ReadWindow());
  if (place_.epoch != values[1] || used > window_.size) {
    window_read_ = false;
    place_ = {values[1], values[2], 0, {values[4], values[5]}};
    return error("the files hold fewer samples than were read when it was written");
  }
  place_.used = used;
  return {};
}

}  // namespace portolan
