// Fits the constants of one kernel family on one chip to timed kernels and writes them as a dated data file, with the
// regret on shapes that were left out.
//
//   calibrate_gemm --family cublaslt --chip h200 --dtype bf16 --date 2026-11-30 --out FILE JUDGED.csv [--also TAUGHT.csv]
//
// JUDGED files count in the regret; --also files only teach; --test files are looked at afterwards. The same inputs give
// the same file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "hw/catalogue.h"
#include "select/calibrate.h"
#include "select/constants.h"

namespace portolan {
namespace {

std::string Describe(const RegretSummary& r) {
  return fmt::format("n {} geomean {:.4f} p10 {:.4f} worst {:.3f}, median error of the best {:.1f} %", r.n, r.geomean,
                     r.p10, r.worst, 100 * r.median_error);
}

struct Arguments {
  std::string family, chip, dtype, date, out, data_dir = PORTOLAN_DATA_DIR;
  std::vector<std::string> judged, also, test;
  int folds = 5;
  CalibrationOptions options;
};

Result<int> Run(const Arguments& arguments) {
  const auto kind = ParseKernelFamily(arguments.family);
  const FamilyEntry* family = kind ? FindFamily(*kind) : nullptr;
  if (family == nullptr) return MakeError(ErrorCode::kUsage, "unknown kernel family " + arguments.family);
  const auto compute = ParseDType(arguments.dtype);
  if (!compute) return MakeError(ErrorCode::kUsage, "unknown number format " + arguments.dtype);
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::Load({arguments.data_dir}));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, catalogue.FindAccelerator(arguments.chip));

  std::vector<CalibrationRow> rows;
  int lists = 0;
  std::string inputs;
  const auto add = [&](const std::string& path, bool judged) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(auto more, ReadCalibrationRows(path, *compute, *accelerator));
    int most = -1;
    for (CalibrationRow& row : more) {
      most = std::max(most, row.list);
      row.list += lists;
      row.judged = judged;
    }
    lists += most + 1;
    inputs += fmt::format("{}{} ({} rows{})", inputs.empty() ? "" : ", ", std::filesystem::path(path).filename().string(),
                          more.size(), judged ? "" : ", not judged");
    rows.insert(rows.end(), more.begin(), more.end());
    return {};
  };
  for (const std::string& path : arguments.judged) PORTOLAN_RETURN_IF_ERROR(add(path, true));
  for (const std::string& path : arguments.also) PORTOLAN_RETURN_IF_ERROR(add(path, false));
  if (rows.empty()) return MakeError(ErrorCode::kUsage, "no rows of this number format");

  std::vector<double> predicted(rows.size());
  const auto predict = [&](const FamilyConstants& constants) {
    const auto model = family->make(*accelerator, constants);
    for (size_t i = 0; i < rows.size(); ++i) predicted[i] = model->Score(rows[i].problem, rows[i].kernel).total;
    return Describe(Regret(rows, predicted));
  };
  fmt::print("{} rows, {} lists\nuncalibrated: {}\n", rows.size(), lists, predict(InitialConstants(*kind, *compute)));
  std::fflush(stdout);
  FamilyConstants constants = FitFamily(*family, *accelerator, *compute, rows, arguments.options);
  fmt::print("all taught:   {}\n", predict(constants));
  std::fflush(stdout);
  std::string held_out;
  for (const std::string& path : arguments.test) {
    PORTOLAN_ASSIGN_OR_RETURN(const auto unseen, ReadCalibrationRows(path, *compute, *accelerator));
    const auto model = family->make(*accelerator, constants);
    std::vector<double> times;
    for (const CalibrationRow& row : unseen) times.push_back(model->Score(row.problem, row.kernel).total);
    const std::string name = std::filesystem::path(path).filename().string();
    fmt::print("{}: {}\n", name, Describe(Regret(unseen, times)));
    held_out += fmt::format("{}{}: {}", held_out.empty() ? "" : "; ", name, Describe(Regret(unseen, times)));
  }
  if (arguments.folds > 1) {
    const auto unseen = HeldOutPredictions(*family, *accelerator, *compute, rows, arguments.folds, arguments.options);
    const std::string parts = fmt::format("{} folds: {}", arguments.folds, Describe(Regret(rows, unseen)));
    fmt::print("held out, {}\n", parts);
    held_out += (held_out.empty() ? "" : "; ") + parts;
    std::map<int, std::pair<double, double>> lists_best;  // for the list of misses
    std::map<int, size_t> chosen;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].judged) continue;
      auto [place, added] = lists_best.try_emplace(rows[i].list, rows[i].seconds, unseen[i]);
      if (added || unseen[i] < place->second.second) {
        place->second.second = unseen[i];
        chosen[rows[i].list] = i;
      }
      place->second.first = std::min(place->second.first, rows[i].seconds);
    }
    std::vector<std::pair<double, size_t>> misses;
    for (const auto& [list, i] : chosen) misses.emplace_back(lists_best[list].first / rows[i].seconds, i);
    std::sort(misses.begin(), misses.end());
    for (size_t i = 0; i < std::min<size_t>(12, misses.size()); ++i) {
      const CalibrationRow& row = rows[misses[i].second];
      fmt::print("  {:.3f}  {} x {} x {} layout {} batch {}: chose {}x{} algo {} split {}\n", misses[i].first, row.problem.m,
                 row.problem.n, row.problem.k, static_cast<int>(row.problem.layout), row.problem.batch, row.kernel.tile_m,
                 row.kernel.tile_n, row.kernel.algo, row.kernel.split_k);
    }
  }
  if (!arguments.out.empty()) {
    constants.date = arguments.date;
    constants.inputs = inputs;
    constants.command = fmt::format("calibrate_gemm --family {} --chip {} --dtype {} --ridge {} --prior {}", arguments.family,
                                    arguments.chip, arguments.dtype, arguments.options.ridge, arguments.options.prior);
    PORTOLAN_RETURN_IF_ERROR(WriteFamilyConstants(constants, held_out, arguments.out));
  }
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  CLI::App app{"Fits a kernel family's constants to timed kernels"};
  portolan::Arguments arguments;
  app.add_option("--family", arguments.family, "triton, cublaslt, tensile, aiter")->required();
  app.add_option("--chip", arguments.chip, "accelerator id")->required();
  app.add_option("--dtype", arguments.dtype, "compute type")->required();
  app.add_option("--date", arguments.date, "YYYY-MM-DD, written into the file")->required();
  app.add_option("--out", arguments.out, "file to write");
  app.add_option("--also", arguments.also, "CSV that teaches but is not judged");
  app.add_option("--test", arguments.test, "CSV that is neither taught nor judged: its regret is printed");
  app.add_option("--folds", arguments.folds, "parts for the held-out regret; 1 = none")->capture_default_str();
  app.add_option("--ridge", arguments.options.ridge, "weight of squared factors")->capture_default_str();
  app.add_option("--prior", arguments.options.prior, "weight of constants' distance from uncalibrated")->capture_default_str();
  app.add_option("--data", arguments.data_dir, "data folder")->capture_default_str();
  app.add_option("JUDGED", arguments.judged, "CSV with timed kernels")->required();
  CLI11_PARSE(app, argc, argv);
  const auto result = portolan::Run(arguments);
  if (!result) {
    std::fprintf(stderr, "calibrate_gemm: %s\n", portolan::FormatError(result.error()).c_str());
    return portolan::ExitCode(result.error().code);
  }
  return *result;
}
