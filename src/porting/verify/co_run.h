#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "porting/verify/buffer_compare.h"

namespace portolan {

// One of two programs that run side by side.
struct RunSide {
  std::string program;
  std::string name;  // what it sees as its own: the same for both, as programs print it
  std::string folder;
  std::vector<std::string> arguments;
  uint64_t seed = 0;  // of the order of the waves; 0: one after the other
  uint8_t fill = 0;   // of memory that nobody has written
};

// An element whose last writer in one launch is asked for.
struct Watch {
  int64_t launch = 0;   // 0: none; the first is 1
  int64_t address = 0;  // in the device's memory, from its start
};

struct RunOptions {
  std::chrono::seconds limit{60};           // processor time of each program; eight times that by the clock
  int64_t memory_limit = int64_t{4} << 30;  // of the device's memory, in bytes
  Watch watch;
  bool stop_after_watch = false;
};

// A place in a program that a run reported: addresses of the machine code, innermost first.
struct CodePlace {
  std::vector<uint64_t> addresses;
};

struct RunFault {
  std::string kind;  // as src/host_gpu/session.h has them
  std::string kernel;
  int64_t block = -1;
  int work_item = -1;
  CodePlace place;
  CodePlace other;
  std::string detail;
};

struct LaunchPlace {
  int64_t number = 0;  // from 1
  std::string kernel;
  std::string file;
  int line = 0;
};

struct RunDifference {
  LaunchPlace launch;    // after which it was seen; of the first side
  bool at_copy = false;  // seen when results were copied to the host, at `file`:`line` of the launch's place
  int buffer = 0;        // by order of allocation, from 0
  int64_t buffer_bytes = 0;
  int64_t element_offset = 0;  // bytes from the device memory's start
  ElementType type;
  BufferDifference what;
};

// A launch and a number of it: bytes of shared memory of a block, work-items of a row of the grid.
struct LaunchSize {
  LaunchPlace launch;
  int64_t size = 0;
};

struct SideResult {
  enum class End { kExited, kSignalled, kTimeLimit, kStopped, kNotStarted };
  End end = End::kNotStarted;
  int code = 0;     // the exit code, or the signal
  std::string why;  // the runtime's reason for ending the program
  std::string output;
  std::vector<RunFault> faults;
  std::vector<LaunchSize> shared;       // 32 KiB and more
  std::vector<LaunchSize> large_grids;  // more than 2^32 - 1 work-items in a row
  int64_t launches = 0;
  int64_t allocations = 0;  // of device memory
  RunFault writer;          // the watched element's last; its kind is empty when there was none
};

struct PairResult {
  SideResult side[2];
  std::vector<RunDifference> differences;  // the first of each launch site and buffer, in the order seen
  std::string parted;  // why the programs could not be followed side by side any longer; empty: they could to the end
  int64_t compared_launches = 0;
  int64_t compared_copies = 0;  // of results to the host
  double largest_relative = 0;  // of floating-point elements that agreed
  double seconds = 0;
};

// Runs two programs made by BuildForHost side by side: each waits after every launch and at every copy of results to
// the host until the other has come as far, and their buffers are compared. Both are ended at the limit. An error is
// only a system that gives no memory file or process.
Result<PairResult> RunPair(const RunSide sides[2], const RunOptions& options);

}  // namespace portolan
