#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hw/catalogue.h"

namespace portolan {

// What every command reads; main.cc fills it before a command's callback runs.
struct GlobalOptions {
  std::vector<std::string> data_dirs;  // --data-dir, after the built-in data; a later one wins
  std::string json_path;               // --json FILE; empty: none
};

// Each Add<Name>Command declares its subcommand. `global` and `exit_code` must outlive the parse; the callback prints
// its answer to standard output and sets *exit_code (0: an answer; otherwise ExitCode of the error that it printed).
void AddEstimateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddPlanCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddValidateCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddSelectCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddRegretCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddHwCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddPortCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddAuditCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);
void AddVerifyCommand(CLI::App& app, const GlobalOptions& global, int* exit_code);

// The folder of the built-in data: environment PORTOLAN_DATA, else what the build compiled in.
std::string BuiltInDataDirectory();
// The built-in data folder, then the user's own where `calibrate` has written to it, then those of --data-dir.
std::vector<std::string> DataDirectories(const GlobalOptions& global);
// Built-in hardware, then that of the user's directories.
Result<Catalogue> LoadCatalogue(const GlobalOptions& global);
// The same, for commands that price steps: the GEMM kernel catalogues and their error records are read as well.
Result<Catalogue> LoadPricingCatalogue(const GlobalOptions& global);
// The samples of a batch that an option gives, "8192" or "8.192e3"; 0 when it is not given. Error: not a whole number
// from 1 to 1e12, as in a recipe.
Result<int64_t> ParseBatch(const char* option, const std::optional<std::string>& given);
// Prints "portolan: file:line: field: message" to standard error and returns the exit code.
int ReportError(const Error& error);

// `text` broken at blanks so that no line exceeds `width` columns; every line begins with `indent` blanks. A longer
// word keeps a line of its own.
std::string WrapText(std::string_view text, int indent, int width);
// A description for --help, broken so that it fits beside CLI11's column of names on a screen of 80.
std::string HelpText(std::string_view text);

}  // namespace portolan
