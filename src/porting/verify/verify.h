#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "porting/target.h"
#include "porting/verify/co_run.h"
#include "porting/verify/code_places.h"

namespace portolan {

// Which program is held against the original.
enum class VerifyPort {
  kPort,    // what `portolan port` makes of it
  kRename,  // the same sources with HIP's names: what a translator of names alone makes of it
  kOther,   // a port that is there already
};

struct VerifyOptions {
  std::string project;  // a folder
  std::string run;      // the command that runs the program; empty: the Makefile's target `run`
  VerifyPort port = VerifyPort::kPort;
  std::string other;                             // kOther: its folder
  std::map<std::string, std::string> constants;  // other values of constants in the sources
  std::chrono::seconds limit{60};                // of one run: processor time of a program
  std::chrono::seconds compile_limit{300};       // of one compiler call
  int64_t memory_bytes = int64_t{4} << 30;       // the device's
  std::string include_dir;                       // the runtime's headers, library and what it needs
  std::string library;
  std::string boost_context;
  std::string compiler = "g++";
  std::string keep_folder;  // where the translated programs go; empty: a folder that is taken away
};

enum class VerifyVerdict {
  kAgrees,
  kDisagrees,  // other results, or a fault
  kNotRun,     // not built, not ended in time, or not possible: `why` says so
};

enum class VerifyLevel { kError, kWarning };

// One thing that was seen, with its place in the original's or the port's sources.
struct VerifyFinding {
  std::string kind;
  VerifyLevel level = VerifyLevel::kError;
  SourcePlace place;
  bool in_port = true;  // whose sources `place` means
  std::string kernel;
  std::string message;
  std::vector<std::string> details;  // a line each
};

struct VerifyReport {
  VerifyVerdict verdict = VerifyVerdict::kNotRun;
  std::string why;  // kNotRun
  std::vector<std::string> why_details;
  std::string command;  // as run
  std::string port;     // what was held against the original: "the port", "the renamed program", "the given port"
  double build_seconds[2] = {0, 0};
  double run_seconds = 0;  // of all runs
  int64_t launches = 0;
  int64_t compared_launches = 0;
  int64_t compared_copies = 0;  // of results to the host
  bool ended = false;           // the original and the port ran to their end
  double largest_relative = 0;
  int wave_sizes[2] = {32, 64};
  std::vector<VerifyFinding> findings;
};

// Builds the original for waves of 32 lanes and the port for waves of 64 on this machine, runs both side by side and
// compares their buffers after every launch; then once more with the port's waves in a random order and other contents
// of unwritten memory. What differs there in the original alone is its own affair. An error is only a project that
// does not exist or a folder that cannot be made.
Result<VerifyReport> Verify(const VerifyOptions& options, const PortTarget& target);

const char* VerifyVerdictName(VerifyVerdict verdict);
nlohmann::ordered_json VerifyReportAsJson(const VerifyReport& report, const PortTarget& target);

}  // namespace portolan
