#pragma once

#include <string>
#include <vector>

namespace portolan {

// One source of a program, as its build compiles it.
struct BuildUnit {
  std::string source;              // relative to the project
  std::string object;              // as named by the build, relative to the project
  std::vector<std::string> flags;  // -D, -U, -I, -isystem, -include and -std; folders are absolute
  bool device = false;             // compiled as CUDA or HIP
  bool openmp = false;
};

struct BuildProgram {
  std::string name;  // relative to the project
  std::vector<BuildUnit> units;
  std::vector<std::string> libraries;  // -l, -L and archives, without the vendors' own
};

struct BuildPlan {
  std::vector<BuildProgram> programs;
  std::vector<std::string> run_commands;  // of the build's target `run`, shell text
};

// What `make -n` printed for a project in `root`: compiler calls, whatever the compiler, and how they are linked.
// Folders that the recipes change to are followed. Words that are not understood are left out.
BuildPlan ReadMakeOutput(const std::string& output, const std::string& root);

// A project without a build of its own: one program of all sources that no other source includes.
BuildPlan PlanWithoutBuild(const std::string& root);

}  // namespace portolan
