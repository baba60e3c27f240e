#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/network.h"

namespace portolan {

// CRC-32C (Castagnoli), as TFRecord files use it.
uint32_t Crc32c(const void* data, size_t bytes);

// TensorBoard scalars: an append-only file of TFRecords (u64 length, masked CRC of it, data, masked CRC of the data),
// each one Event message of tensorflow/core/util/event.proto. Not thread-safe.
class EventWriter {
 public:
  // Makes the folder where needed and a new file in it.
  static Result<EventWriter> Open(const std::string& folder);
  // Values that are not finite are left out. Flushed.
  Status Add(int64_t step, const std::vector<std::pair<std::string, double>>& values);

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  Status Record(const std::string& event);
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Phases of steps as a Chrome trace (one X event each), for Perfetto or chrome://tracing. Keeps the last kMaxEvents.
class ChromeTrace {
 public:
  void Add(int64_t step, const std::vector<PhaseTime>& phases);
  Status Write(const std::string& path) const;

 private:
  static constexpr size_t kMaxEvents = 200000;
  struct Event {
    int64_t step;
    PhaseTime phase;
  };
  std::vector<Event> events_;
  size_t next_ = 0;
};

}  // namespace portolan
