#pragma once

#include <CLI/CLI.hpp>

#include "commands.h"

namespace portolan {

// The commands that run kernels on this machine; as those of commands.h.
void AddCalibrateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddOptimizeCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);

// For `train`, `calibrate` and `optimize`: SettleThreads of loop/settle_threads.h; the latter two, which take times,
// with every thread on a core of its own.
void SettleThreadsFor(int argc, char** argv);

}  // namespace portolan
