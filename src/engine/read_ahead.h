#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/batch.h"

namespace portolan {

// Reads batches of one size on a thread of its own, so that they are ready when the loop wants them.
class ReadAhead {
 public:
  // What one read gave, and where the reader stood after it.
  struct Item {
    Result<ReadOutcome> outcome = ReadOutcome::kEnd;
    Batch batch;
    std::string position;
  };
  // `reader` must outlive this and not be used beside it.
  ReadAhead(Reader* reader, int64_t batch_size, size_t depth);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  // The next batch; blocks until it is there. After kEnd or an error the same again.
  Item Next();

 private:
  void Run();

  Reader* reader_;
  const int64_t batch_size_;
  const size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace portolan
