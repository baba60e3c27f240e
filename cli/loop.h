#pragma once

#include <CLI/CLI.hpp>

#include "commands.h"

namespace portolan {

// The commands that run kernels on this machine; as those of commands.h.
void AddCalibrateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddOptimizeCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);

// OpenMP's waiting threads spin for milliseconds by default, which halts a step whenever another thread wants a core,
// or sleep at once (OMP_WAIT_POLICY=passive), which makes every parallel loop a hundred times as dear. For `train`,
// `calibrate` and `optimize` this starts the program again with a spin of tens of microseconds, and for the two that
// take times with every thread on a core of its own, unless the environment says otherwise: libgomp reads it before
// main.
void SettleThreads(int argc, char** argv);

}  // namespace portolan
