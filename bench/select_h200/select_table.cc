// Prints, for timed lists of kernels (cublaslt_lists.cu, triton_sweep.py), what the library's first choice, our choice
// and the best of the list take: best time / chosen time, geometric mean, tenth percentile and worst, for each file and
// for its classes of problems (select/regret.h).
//
//   select_table --on h200 FILE.csv...
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "hw/catalogue.h"
#include "select/calibrate.h"
#include "select/constants.h"
#include "select/regret.h"

namespace portolan {
namespace {

void PrintLine(const std::string& name, const RegretSummary* first, const RegretSummary& ours) {
  const auto shown = [](const RegretSummary& r) {
    return fmt::format("{:.4f} ({:.4f}, {:.3f})", r.geomean, r.p10, r.worst);
  };
  fmt::print("{:<44} {:>5}  {:>24}  {:>24}  {:>7.1f} %\n", name, ours.n, first != nullptr ? shown(*first) : "-",
             shown(ours), 100 * ours.median_error);
}

Result<int> Run(const std::string& data_dir, const std::string& chip, const std::vector<std::string>& files) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::Load({data_dir}));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, catalogue.FindAccelerator(chip));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants({data_dir}));
  fmt::print("{:<44} {:>5}  {:>24}  {:>24}  {:>9}\n", "best / chosen: geomean (p10, worst)", "n", "first of the list",
             "ours", "time err");
  for (const std::string& file : files) {
    for (const DType dtype : {DType::kBf16, DType::kTf32, DType::kFp8E4m3, DType::kFp16}) {
      PORTOLAN_ASSIGN_OR_RETURN(const auto rows, ReadCalibrationRows(file, dtype, *accelerator));
      if (rows.empty()) continue;
      const FamilyEntry* family = FindFamily(rows[0].kernel.family);
      const auto model = family->make(*accelerator, PickConstants(constants, family->family, dtype, *accelerator));
      std::vector<double> first, ours;
      for (const CalibrationRow& row : rows) {
        first.push_back(row.kernel.rank);
        ours.push_back(model->Score(row.problem, row.kernel).total);
      }
      const RegretSet own = ScoreRegret(std::filesystem::path(file).filename().string(), rows, ours);
      const bool ranked = rows[0].kernel.rank >= 0;
      const RegretSet library = ScoreRegret(own.name, rows, first);
      PrintLine(own.name, ranked ? &library.all : nullptr, own.all);
      for (const auto& [name, summary] : own.classes) {
        PrintLine("  " + name, ranked ? &library.classes.at(name) : nullptr, summary);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  CLI::App app{"First choice, ours and best over timed lists"};
  std::string data_dir = PORTOLAN_DATA_DIR, chip;
  std::vector<std::string> files;
  app.add_option("--on", chip, "accelerator id")->required();
  app.add_option("--data", data_dir, "data folder")->capture_default_str();
  app.add_option("FILES", files, "timed lists (CSV)")->required();
  CLI11_PARSE(app, argc, argv);
  const auto result = portolan::Run(data_dir, chip, files);
  if (!result) {
    std::fprintf(stderr, "select_table: %s\n", portolan::FormatError(result.error()).c_str());
    return portolan::ExitCode(result.error().code);
  }
  return *result;
}
