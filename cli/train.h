#pragma once

#include <CLI/CLI.hpp>

#include "commands.h"

namespace portolan {

// As the commands of commands.h.
void AddTrainCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);

}  // namespace portolan
