#include "select/regret.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "select/constants.h"

namespace portolan {
namespace {

Result<int> RunRegret(const GlobalOptions& global, const std::string& data_dir) {
  if (!std::filesystem::is_directory(data_dir + "/gemm")) {
    std::fprintf(stderr,
                 "portolan: NOTHING SCORED: no measured GEMM times in %s (it should hold gemm/); name the folder with "
                 "--data\n",
                 data_dir.c_str());
    if (!global.json_path.empty()) PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, RegretJson({})));
    return 0;
  }
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue hardware, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants(DataDirectories(global)));
  PORTOLAN_ASSIGN_OR_RETURN(const RegretReport report, ScoreMeasuredData(data_dir, hardware, constants));
  if (!global.json_path.empty()) PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, RegretJson(report)));
  if (global.json_path != "-") fmt::print("{}", ShowRegret(report));
  return 0;
}

}  // namespace

void AddRegretCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  CLI::App* command = app.add_subcommand("regret", "Check `select` against measured kernels");
  auto data_dir = std::make_shared<std::string>("../shared/data");
  command->add_option("--data", *data_dir, HelpText("folder that holds gemm/ with the measured times"))
      ->capture_default_str();
  command->footer(
      "Scores 1 when the fastest measured kernel of every list is chosen. A folder that is\nabsent scores "
      "nothing and says so (docs/measurements.md).");
  command->callback([&global, exit_code, data_dir] {
    const Result<int> result = RunRegret(global, *data_dir);
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
