#include "engine/data/prefetch_reader.h"

#include <new>
#include <utility>

#include "base/check.h"

namespace portolan {

PrefetchReader::PrefetchReader(std::unique_ptr<Reader> inner, int64_t ahead)
    : inner_(std::move(inner)),
      ahead_(static_cast<size_t>(ahead)),
      position_(inner_->Position()),
      counts_(inner_->Counts()) {
  PORTOLAN_CHECK(ahead >= 1, "a queue holds a batch");
}

PrefetchReader::~PrefetchReader() { Stop(); }

void PrefetchReader::Start(int64_t size) {
  size_ = size;
  thread_ = std::thread([this, size] { Work(size); });
}

void PrefetchReader::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  stopping_ = false;
  ready_.clear();
}

void PrefetchReader::Work(int64_t size) {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || ready_.size() < ahead_; });
      if (stopping_) return;
      if (!spare_.empty()) {
        item.batch = std::move(spare_.front());
        spare_.pop_front();
      }
    }
    try {
      item.outcome = inner_->Next(size, &item.batch);
    } catch (const std::bad_alloc&) {
      item.outcome = MakeError(ErrorCode::kIo, "not enough memory for a batch of " + std::to_string(size) + " samples");
    }
    item.position = inner_->Position();
    item.counts = inner_->Counts();
    const bool last = !item.outcome || *item.outcome == ReadOutcome::kEnd;
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(item));
    }
    changed_.notify_all();
    if (last) return;  // the end and an error stay in the queue for every later call
  }
}

Result<ReadOutcome> PrefetchReader::Next(int64_t size, Batch* batch) {
  if (thread_.joinable() && size != size_) {
    const ReadCounts seen = Counts();
    PORTOLAN_RETURN_IF_ERROR(Restore(position_));
    earlier_ = seen;
  }
  if (!thread_.joinable()) Start(size);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Item& item = ready_.front();
  if (!item.outcome || *item.outcome == ReadOutcome::kEnd) {
    batch->size = 0;
    for (std::vector<float>* floats : {&batch->dense, &batch->labels, &batch->id_weights, &batch->sample_weights}) {
      floats->clear();
    }
    batch->ids.clear();
    batch->offsets.assign(1, 0);
    if (item.outcome) {
      position_ = item.position;
      counts_ = item.counts;
    }
    return item.outcome;
  }
  std::swap(*batch, item.batch);
  spare_.push_back(std::move(item.batch));
  position_ = std::move(item.position);
  counts_ = std::move(item.counts);
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return ReadOutcome::kBatch;
}

Status PrefetchReader::Restore(const std::string& position) {
  Stop();
  PORTOLAN_RETURN_IF_ERROR(inner_->Restore(position));
  position_ = inner_->Position();
  counts_ = inner_->Counts();
  earlier_ = {};
  return {};
}

ReadCounts PrefetchReader::Counts() const {
  ReadCounts counts = counts_;
  counts.Add(earlier_);
  return counts;
}

}  // namespace portolan
