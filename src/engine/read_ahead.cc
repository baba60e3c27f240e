#include "engine/read_ahead.h"

#include <utility>

namespace portolan {

ReadAhead::ReadAhead(Reader* reader, int64_t batch_size, size_t depth)
    : reader_(reader), batch_size_(batch_size), depth_(depth), thread_([this] { Run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::Run() {
  for (bool more = true; more;) {
    Item item;
    item.outcome = reader_->Next(batch_size_, &item.batch);
    item.position = reader_->Position();
    more = item.outcome.has_value() && *item.outcome == ReadOutcome::kBatch;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || items_.size() < depth_; });
    if (stopping_) return;
    items_.push_back(std::move(item));
    lock.unlock();
    changed_.notify_all();
  }
}

ReadAhead::Item ReadAhead::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !items_.empty(); });
  const bool last = !items_.front().outcome.has_value() || *items_.front().outcome == ReadOutcome::kEnd;
  if (last) return items_.front();
  Item item = std::move(items_.front());
  items_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return item;
}

}  // namespace portolan
