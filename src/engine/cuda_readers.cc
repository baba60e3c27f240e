#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "engine/cuda_batch.h"
#include "engine/cuda_network.h"
#include "engine/data/synthetic.h"
#include "kernels/cuda_kernels.h"

namespace portolan {
namespace {

using device::cuda::Queue;
using kernels::cuda::SyntheticBin;
using kernels::cuda::SyntheticFeature;

// Batches that nobody holds any more are used again.
class BatchPool {
 public:
  std::shared_ptr<UploadedBatch> Take() {
    for (const auto& batch : batches_) {
      if (batch.use_count() == 1) return batch;
    }
    batches_.push_back(std::make_shared<UploadedBatch>());
    return batches_.back();
  }

 private:
  std::vector<std::shared_ptr<UploadedBatch>> batches_;
};

// Copies the batches of another reader, in whatever thread calls it; keeps those that come again.
class CopyingReader : public Reader {
 public:
  explicit CopyingReader(std::unique_ptr<Reader> inner) : inner_(std::move(inner)) {}

  Result<ReadOutcome> Next(int64_t size, Batch* batch) override {
    const int64_t cycle = inner_->Cycle();
    if (cycle == 0) {
      PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, inner_->Next(size, batch));
      if (outcome == ReadOutcome::kEnd) return outcome;
      const std::shared_ptr<UploadedBatch> uploaded = pool_.Take();
      uploaded->Upload(*batch, queue_);
      batch->device = uploaded;
      return outcome;
    }
    if (size != size_) kept_.clear();
    size_ = size;
    long long position = 0;
    if (!ParseInt64(inner_->Position(), &position)) position = 0;
    Kept& kept = kept_[position % cycle];
    if (kept.device == nullptr) {
      Batch read;
      PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, inner_->Next(size, &read));
      if (outcome == ReadOutcome::kEnd) return outcome;
      const auto uploaded = std::make_shared<UploadedBatch>();
      uploaded->Upload(read, queue_);
      kept.device = uploaded;
      kept.labels = std::move(read.labels);
    } else {
      PORTOLAN_RETURN_IF_ERROR(inner_->Restore(std::to_string(position + 1)));
    }
    batch->size = kept.device->size;
    batch->labels = kept.labels;
    batch->device = kept.device;
    return ReadOutcome::kBatch;
  }
  std::string Position() const override { return inner_->Position(); }
  Status Restore(const std::string& position) override { return inner_->Restore(position); }
  ReadCounts Counts() const override { return inner_->Counts(); }
  int64_t Cycle() const override { return inner_->Cycle(); }

 private:
  struct Kept {
    std::shared_ptr<UploadedBatch> device;
    std::vector<float> labels;
  };
  std::unique_ptr<Reader> inner_;
  Queue queue_;
  BatchPool pool_;
  std::map<int64_t, Kept> kept_;
  int64_t size_ = 0;
};

// Draws the samples of a SyntheticReader on the device.
class DrawingReader : public Reader {
 public:
  // Null where the features have a broken number of lookups, which are drawn one after the other.
  static std::unique_ptr<Reader> Make(const SyntheticReader& reader, const BatchSchema& schema, int64_t samples) {
    auto made = std::unique_ptr<DrawingReader>(new DrawingReader);
    std::vector<SyntheticFeature> features;
    std::vector<SyntheticBin> bins;
    for (const SyntheticReader::FeatureStream& stream : reader.streams()) {
      if (stream.lookups != std::floor(stream.lookups)) return nullptr;
      SyntheticFeature feature;
      feature.rows = stream.rows;
      feature.lookups = static_cast<int64_t>(stream.lookups);
      feature.exponent = stream.exponent;
      feature.multiplier = stream.multiplier;
      feature.shift = stream.shift;
      feature.first_bin = static_cast<int32_t>(bins.size());
      feature.bins = static_cast<int32_t>(stream.bins.size());
      for (const SyntheticReader::Bin& bin : stream.bins) bins.push_back({bin.cumulative, bin.first, bin.count});
      features.push_back(feature);
      made->lookups_ += feature.lookups;
    }
    made->samples_ = samples;
    made->features_ = device::cuda::DeviceMemory(static_cast<int64_t>(features.size() * sizeof(features[0])), "data");
    made->bins_ = device::cuda::DeviceMemory(static_cast<int64_t>(bins.size() * sizeof(SyntheticBin)), "data");
    device::cuda::CopyToDevice(made->queue_, features.data(), made->features_.bytes(), made->features_.As<void>());
    device::cuda::CopyToDevice(made->queue_, bins.data(), made->bins_.bytes(), made->bins_.As<void>());
    made->queue_.Wait();
    kernels::cuda::SyntheticWorld& world = made->world_;
    world.features = made->features_.As<SyntheticFeature>();
    world.bins = made->bins_.As<SyntheticBin>();
    world.feature_count = static_cast<int32_t>(features.size());
    world.dense_width = schema.dense_width;
    world.seed = reader.options().seed;
    world.split = reader.SplitKey();
    world.scale = reader.scale();
    world.offset = std::log(reader.options().base_rate / (1 - reader.options().base_rate));
    return made;
  }

  Result<ReadOutcome> Next(int64_t size, Batch* batch) override {
    const int64_t count = samples_ > 0 ? std::min(size, samples_ - next_) : size;
    if (count <= 0) return ReadOutcome::kEnd;
    const std::shared_ptr<UploadedBatch> drawn = pool_.Take();
    const UploadedBatch::Arrays arrays =
        drawn->Reserve(count, world_.dense_width, lookups_ * count, world_.feature_count);
    kernels::cuda::MakeSynthetic(world_, next_, count, arrays.dense, arrays.labels, arrays.ids, arrays.offsets,
                                 queue_.stream());
    batch->size = count;
    batch->labels.resize(static_cast<size_t>(count));
    device::cuda::CopyToHost(queue_, arrays.labels, 4 * count, batch->labels.data());
    queue_.Wait();
    batch->device = drawn;
    next_ += count;
    return ReadOutcome::kBatch;
  }
  std::string Position() const override { return std::to_string(next_); }
  Status Restore(const std::string& position) override {
    long long next = 0;
    if (!ParseInt64(position, &next) || next < 0) {
      return MakeError(ErrorCode::kInvalidValue,
                       "'" + position.substr(0, 40) + "' is not a position of synthetic data");
    }
    next_ = next;
    return {};
  }

 private:
  DrawingReader() = default;
  Queue queue_;
  BatchPool pool_;
  device::cuda::DeviceMemory features_, bins_;
  kernels::cuda::SyntheticWorld world_;
  int64_t lookups_ = 0, samples_ = 0, next_ = 0;
};

}  // namespace

std::unique_ptr<Reader> MakeCudaReader(std::unique_ptr<Reader> reader, const BatchSchema& schema) {
  if (const auto* synthetic = dynamic_cast<const SyntheticReader*>(reader.get())) {
    if (auto drawing = DrawingReader::Make(*synthetic, schema, synthetic->samples())) return drawing;
  }
  return std::make_unique<CopyingReader>(std::move(reader));
}

}  // namespace portolan
