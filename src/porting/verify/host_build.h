#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "porting/target.h"
#include "porting/verify/build_commands.h"

namespace portolan {

// How a program's sources are made ready for the host.
struct HostBuildOptions {
  std::string project;      // the folder with its sources
  std::string work_folder;  // where the translated tree and the objects go
  std::string siblings_of;  // the folder whose neighbours a path like ../data means: the original project's place
  std::string include_dir;  // src/host_gpu/include
  std::string library;      // libportolan_host_gpu.a
  std::string boost_context;
  std::string compiler = "g++";
  int wave_size = 32;
  bool hip = false;  // names are HIP's
  const PortTarget* target = nullptr;
  std::map<std::string, std::string> constants;  // other values of the sources' constants
  std::chrono::seconds limit{300};
};

struct HostProgram {
  std::string path;              // empty when it was not built
  std::string folder;            // where it runs
  std::vector<std::string> why;  // then: the compiler's first messages, a line each
  BuildPlan plan;
  double seconds = 0;
  std::set<std::string> constants;  // of options.constants, those that the sources have
};

// Translates every source below `project` to `work_folder`, compiles the program that its Makefile (or, without one,
// the sources) makes and links it with the runtime. An error is only a folder that cannot be made; a program that does
// not compile is an answer.
Result<HostProgram> BuildForHost(const HostBuildOptions& options, const BuildPlan& plan);

// The build of the project in `root`, from `make -n` where there is a Makefile.
BuildPlan FindBuildPlan(const std::string& root);

}  // namespace portolan
