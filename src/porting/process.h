#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace portolan {

// What became of a program that was run.
struct ProcessResult {
  enum class End { kExited, kSignalled, kTimedOut, kNotStarted };
  End end = End::kNotStarted;
  int code = -1;       // the exit code, or the signal
  std::string output;  // standard output and error together, at most kLargestOutput bytes of them
  double seconds = 0;

  bool Succeeded() const { return end == End::kExited && code == 0; }
};

constexpr size_t kLargestOutput = size_t{1} << 20;

// Runs `arguments` (the first is the program, looked up in $PATH) without a shell, with no standard input, and waits.
// After `limit` it is killed with everything that it started. Blocks; may be called from several threads at once.
ProcessResult RunProcess(const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

// The full path of a program: `name` itself when it has a slash and can be run, otherwise the first in $PATH; "" for
// none.
std::string FindProgram(const std::string& name);

// A folder of our own under $TMPDIR (or /tmp) that goes with its owner; path() is "" when it could not be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace portolan
