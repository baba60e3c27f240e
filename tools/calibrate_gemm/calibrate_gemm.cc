// Fits the constants of one kernel family on one chip to timed kernels and writes them as a dated data file, with the
// regret on shapes that were left out.
//
//   calibrate_gemm --family cublaslt --chip h200 --dtype bf16 --date 2026-11-30 --out FILE JUDGED.csv [--also
//   TAUGHT.csv]
//
//   calibrate_gemm --data-set mi350x_tensile_bf16 --shared DIR --date 2026-11-30 --out FILE
//
// A data set (mi350x_tensile_bf16, aiter_gfx950_256_bf16 ...) is several files of DIR/gemm joined (select/
// measured_lists.h); it names family, chip and dtype itself. Tensile's constants are fitted by FitLists.
//
// JUDGED files count in the regret; --also files only teach; --test files are looked at afterwards. The same inputs
// give the same file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "hw/catalogue.h"
#include "select/calibrate.h"
#include "select/constants.h"
#include "select/fit_lists.h"
#include "select/measured_lists.h"

namespace portolan {
namespace {

constexpr size_t kMissesShown = 12;

std::string Describe(const RegretSummary& r) {
  return fmt::format("n {} geomean {:.4f} p10 {:.4f} worst {:.3f}, median error of the best {:.1f} %", r.n, r.geomean,
                     r.p10, r.worst, 100 * r.median_error);
}

// The lists on which choosing by `predicted` costs most.
void PrintMisses(const std::vector<CalibrationRow>& rows, const std::vector<double>& predicted) {
  struct List {
    size_t best, chosen;
  };
  std::map<int, List> lists;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].judged) continue;
    List& list = lists.try_emplace(rows[i].list, List{i, i}).first->second;
    if (rows[i].seconds < rows[list.best].seconds) list.best = i;
    if (predicted[i] < predicted[list.chosen]) list.chosen = i;
  }
  std::vector<std::pair<double, List>> misses;
  for (const auto& [id, list] : lists) misses.emplace_back(rows[list.best].seconds / rows[list.chosen].seconds, list);
  std::sort(misses.begin(), misses.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto name = [&](size_t i) {
    const GemmKernel& k = rows[i].kernel;
    return fmt::format("{}x{} algo {} custom {} cluster {} split {}: {:.1f} us, predicted {:.1f}", k.tile_m, k.tile_n,
                       k.algo, k.custom, k.cluster_id, k.split_k, 1e6 * rows[i].seconds, 1e6 * predicted[i]);
  };
  for (size_t i = 0; i < std::min(kMissesShown, misses.size()); ++i) {
    const auto& [ratio, list] = misses[i];
    const GemmProblem& p = rows[list.best].problem;
    fmt::print("  {:.3f}  {} x {} x {} layout {} batch {}\n         chose {}\n         best  {}\n", ratio, p.m, p.n,
               p.k, static_cast<int>(p.layout), p.batch, name(list.chosen), name(list.best));
  }
}

// Least kernels of a list of aiter's that counts in the regret: shorter lists hold no choice worth the name.
constexpr int kLeastCandidates = 4;

struct Arguments {
  std::string data_set, shared = "../shared/data";
  std::string family, chip, dtype, date, out, data_dir = PORTOLAN_DATA_DIR;
  std::vector<std::string> judged, also, test;
  int folds = 5;
  CalibrationOptions options;
};

Result<MeasuredList> ReadDataSet(const Arguments& arguments, const Catalogue& catalogue) {
  if (arguments.data_set.rfind("aiter_", 0) != 0) return ReadTensileSweep(arguments.shared, catalogue);
  PORTOLAN_ASSIGN_OR_RETURN(std::vector<MeasuredList> lists, ReadAiterTables(arguments.shared, catalogue));
  std::vector<std::string> names;
  for (MeasuredList& list : lists) {
    names.push_back(list.name);
    if (list.name != arguments.data_set) continue;
    JudgeListsOf(kLeastCandidates, &list.rows);
    return list;
  }
  return MakeError(ErrorCode::kUsage, fmt::format("no data set {}; there are mi350x_tensile_bf16, {}",
                                                  arguments.data_set, fmt::join(names, ", ")));
}

Result<int> Run(Arguments arguments) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::Load({arguments.data_dir}));
  std::vector<CalibrationRow> rows;
  std::string inputs;
  if (!arguments.data_set.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(MeasuredList list, ReadDataSet(arguments, catalogue));
    arguments.family = KernelFamilyName(list.family);
    arguments.chip = list.chip;
    arguments.dtype = DTypeName(list.compute);
    rows = std::move(list.rows);
    inputs = fmt::format("data set {} ({} rows)", list.name, rows.size());
  }
  const auto kind = ParseKernelFamily(arguments.family);
  const FamilyEntry* family = kind ? FindFamily(*kind) : nullptr;
  if (family == nullptr) return MakeError(ErrorCode::kUsage, "unknown kernel family " + arguments.family);
  const auto compute = ParseDType(arguments.dtype);
  if (!compute) return MakeError(ErrorCode::kUsage, "unknown number format " + arguments.dtype);
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, catalogue.FindAccelerator(arguments.chip));

  int lists = 0;
  const auto add = [&](const std::string& path, bool judged) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(auto more, ReadCalibrationRows(path, *compute, *accelerator));
    int most = -1;
    for (CalibrationRow& row : more) {
      most = std::max(most, row.list);
      row.list += lists;
      row.judged = judged;
    }
    lists += most + 1;
    inputs += fmt::format("{}{} ({} rows{})", inputs.empty() ? "" : ", ",
                          std::filesystem::path(path).filename().string(), more.size(), judged ? "" : ", not judged");
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
    PrintMisses(unseen, times);
    held_out += fmt::format("{}{}: {}", held_out.empty() ? "" : "; ", name, Describe(Regret(unseen, times)));
  }
  if (arguments.folds > 1) {
    const auto unseen = HeldOutPredictions(*family, *accelerator, *compute, rows, arguments.folds, arguments.options);
    const std::string parts = fmt::format("{} folds: {}", arguments.folds, Describe(Regret(rows, unseen)));
    fmt::print("held out, {}\n", parts);
    held_out += (held_out.empty() ? "" : "; ") + parts;
    PrintMisses(rows, unseen);
  }
  if (!arguments.out.empty()) {
    constants.date = arguments.date;
    constants.inputs = inputs;
    const std::string what = arguments.data_set.empty() ? fmt::format("--family {} --chip {} --dtype {}",
                                                                      arguments.family, arguments.chip, arguments.dtype)
                                                        : "--data-set " + arguments.data_set;
    constants.command =
        fmt::format("calibrate_gemm {} --ridge {} --prior {}", what, arguments.options.ridge, arguments.options.prior);
    PORTOLAN_RETURN_IF_ERROR(WriteFamilyConstants(constants, held_out, arguments.out));
  }
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  CLI::App app{"Fits a kernel family's constants to timed kernels"};
  portolan::Arguments arguments;
  app.add_option("--family", arguments.family, "triton, cublaslt, tensile, aiter");
  app.add_option("--chip", arguments.chip, "accelerator id");
  app.add_option("--dtype", arguments.dtype, "compute type");
  app.add_option("--date", arguments.date, "YYYY-MM-DD, written into the file")->required();
  app.add_option("--out", arguments.out, "file to write");
  app.add_option("--also", arguments.also, "CSV that teaches but is not judged");
  app.add_option("--test", arguments.test, "CSV that is neither taught nor judged: its regret is printed");
  app.add_option("--folds", arguments.folds, "parts for the held-out regret; 1 = none")->capture_default_str();
  app.add_option("--ridge", arguments.options.ridge, "weight of squared factors")->capture_default_str();
  app.add_option("--prior", arguments.options.prior, "weight of constants' distance from uncalibrated")
      ->capture_default_str();
  app.add_option("--data", arguments.data_dir, "data folder")->capture_default_str();
  app.add_option("JUDGED", arguments.judged, "CSV with timed kernels");
  app.add_option("--data-set", arguments.data_set, "mi350x_tensile_bf16 or aiter_<gfx>_<units>_<dtype>");
  app.add_option("--shared", arguments.shared, "folder that holds gemm/ of the data sets")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto result = portolan::Run(arguments);
  if (!result) {
    std::fprintf(stderr, "calibrate_gemm: %s\n", portolan::FormatError(result.error()).c_str());
    return portolan::ExitCode(result.error().code);
  }
  return *result;
}
