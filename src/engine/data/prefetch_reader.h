#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/batch.h"

namespace portolan {

// Reads ahead of the training loop in a thread of its own. Batches, the end and errors come in the order of the reader
// inside; Position and Counts are those of the last batch that was given out, whatever has been read since.
class PrefetchReader : public Reader {
 public:
  // Keeps up to `ahead` (>= 1) batches of memory. `inner` belongs to the thread from now on.
  PrefetchReader(std::unique_ptr<Reader> inner, int64_t ahead);
  // Waits for the batch that is being read.
  ~PrefetchReader() override;

  // The first call tells the thread the size. A call with another size throws away what was read ahead and reads it
  // again. `batch` changes its contents with the queue, so that no memory is taken for each batch.
  Result<ReadOutcome> Next(int64_t size, Batch* batch) override;
  std::string Position() const override { return position_; }
  Status Restore(const std::string& position) override;
  ReadCounts Counts() const override;

 private:
  struct Item {
    Result<ReadOutcome> outcome = ReadOutcome::kEnd;
    Batch batch;
    std::string position;  // after it
    ReadCounts counts;
  };

  void Start(int64_t size);
  // Ends the thread; afterwards inner_ is the caller's.
  void Stop();
  void Work(int64_t size);

  std::unique_ptr<Reader> inner_;  // of the thread while it runs
  const size_t ahead_;
  std::thread thread_;
  int64_t size_ = 0;  // of the batches read ahead

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;   // guarded by mutex_
  std::deque<Batch> spare_;  // guarded by mutex_: memory that was used before
  bool stopping_ = false;    // guarded by mutex_

  std::string position_;  // what the caller has seen
  ReadCounts counts_;     // of inner_ at position_, since it was restored last
  ReadCounts earlier_;    // before a change of size made this reader restore it
};

}  // namespace portolan
