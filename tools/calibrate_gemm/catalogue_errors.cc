// Measures how well the fastest kernel of a whole catalogue foretells the best measured time, beside cost/gemm, on
// every set of timed products there is, and writes the record that tells the planner which of the two prices its
// products (select/catalogue_error.h).
//
//   catalogue_errors --shared DIR --date 2026-11-30 --out data/constants/whole_catalogue.yaml
//
// DIR holds gemm/ with the published tables; data/measured/h200/*_seed2.csv are the lists that no constant was fitted
// to. The scatter between kernels is taken from the lists: kernels within a factor 1.5 of the best of lists with at
// least four such, about the list's mean.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/gemm.h"
#include "hw/catalogue.h"
#include "select/catalogue_error.h"
#include "select/catalogue_files.h"
#include "select/constants.h"
#include "select/measured_lists.h"
#include "select/selector.h"

namespace portolan {
namespace {

constexpr double kNear = 1.5;
constexpr size_t kLeastNear = 4;

struct Measured {
  GemmProblem problem;
  double seconds = 0.0;
  double launch_seconds = 0.0;  // added by the harness
};

struct Recorder {
  const Catalogue& hardware;
  const std::vector<FamilyConstants>& constants;
  std::vector<std::string> data_dirs;
  std::vector<CatalogueError> errors;
  std::map<std::tuple<std::string, KernelFamily, DType>, double> kernel_error;  // by instruction set

  // Kernels of sm_90 stand in for those of later instruction sets of the vendor, and so does their scatter.
  static std::string LearntOn(const std::string& isa) { return isa == "sm_100" ? "sm_90" : isa; }

  // Records the sets of one family and type, aligned and misaligned shapes apart.
  Status Record(const std::string& set, const std::string& chip, KernelFamily family, DType compute,
                const std::vector<Measured>& shapes) {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(chip));
    const auto scatter = kernel_error.find({LearntOn(accelerator->isa), family, compute});
    if (scatter == kernel_error.end()) return {};  // no lists: nothing is known about the scatter
    const FamilyConstants fitted = PickConstants(constants, family, compute, *accelerator);
    PORTOLAN_ASSIGN_OR_RETURN(const ShippedKernels shipped, LoadShippedKernels(data_dirs, *accelerator, compute));
    KernelCatalogue own = KernelsOf(shipped.catalogue, family);
    if (own.kernels.empty()) return {};
    PORTOLAN_ASSIGN_OR_RETURN(const Selector selector, Selector::Create(*accelerator, std::move(own), constants));
    for (const RowKind rows : {RowKind::kAligned, RowKind::kMisaligned}) {
      CatalogueError entry;
      std::vector<double> select, kernel_blind;
      for (const Measured& shape : shapes) {
        if (RowKindOf(shape.problem) != rows) continue;
        const RankedKernel best = selector.Best(shape.problem);
        if (best.index < 0) continue;
        const double expected = selector.ExpectedTime(shape.problem, best, scatter->second).value;
        const double blind = GemmEstimate(ShapeOf(shape.problem), *accelerator, shape.problem.inputs).total.value;
        select.push_back((expected + shape.launch_seconds) / shape.seconds - 1.0);
        kernel_blind.push_back((blind + shape.launch_seconds) / shape.seconds - 1.0);
        const GemmLayout layout = shape.problem.layout;
        if (std::find(entry.layouts.begin(), entry.layouts.end(), layout) == entry.layouts.end()) {
          entry.layouts.push_back(layout);
        }
      }
      if (select.empty()) continue;
      std::sort(entry.layouts.begin(), entry.layouts.end());
      entry.set = set;
      entry.chip = chip;
      entry.isa = accelerator->isa;
      entry.family = family;
      entry.compute = compute;
      entry.rows = rows;
      entry.n = static_cast<int>(select.size());
      entry.taught = fitted.inputs.find(set) != std::string::npos;
      entry.kernel_error = scatter->second;
      entry.select = SummaryOf(select);
      entry.kernel_blind = SummaryOf(kernel_blind);
      const auto shown = [](std::vector<double> values, const ErrorSummary& s) {
        std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
        return fmt::format("{:+6.1f} {:5.1f} {:5.1f} {:5.1f}", 100 * values[values.size() / 2], 100 * s.mean,
                           100 * s.median, 100 * s.p90);
      };
      fmt::print("{:<28} {:<9} {:<10} {:>5} {} {:.4f}  {}   {}\n", set, KernelFamilyName(family),
                 rows == RowKind::kAligned ? "aligned" : "misaligned", entry.n, entry.taught ? "taught" : "      ",
                 entry.kernel_error, shown(select, entry.select), shown(kernel_blind, entry.kernel_blind));
      std::fflush(stdout);
      errors.push_back(std::move(entry));
    }
    return {};
  }

  // The scatter between the kernels of the lists, and their best times.
  Result<std::vector<Measured>> Learn(const std::string& chip, KernelFamily family, DType compute,
                                      const std::vector<CalibrationRow>& rows) {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(chip));
    const auto model = FindFamily(family)->make(*accelerator, PickConstants(constants, family, compute, *accelerator));
    std::map<int, Measured> best;
    for (const CalibrationRow& row : rows) {
      Measured& shape = best.try_emplace(row.list, Measured{row.problem, row.seconds}).first->second;
      shape.seconds = std::min(shape.seconds, row.seconds);
    }
    std::map<int, std::vector<double>> near;
    for (const CalibrationRow& row : rows) {
      if (row.seconds > kNear * best[row.list].seconds) continue;
      near[row.list].push_back(std::log(model->Score(row.problem, row.kernel).total / row.seconds));
    }
    double squares = 0.0, freedom = 0.0;
    for (const auto& [list, logs] : near) {
      if (logs.size() < kLeastNear) continue;
      double mean = 0.0;
      for (const double x : logs) mean += x / static_cast<double>(logs.size());
      for (const double x : logs) squares += (x - mean) * (x - mean);
      freedom += static_cast<double>(logs.size() - 1);
    }
    if (freedom > 0.0) kernel_error[{accelerator->isa, family, compute}] = std::sqrt(squares / freedom);
    std::vector<Measured> shapes;
    for (const auto& [list, shape] : best) shapes.push_back(shape);
    return shapes;
  }
};

Result<int> Run(const std::string& data_dir, const std::string& shared, const std::string& date,
                const std::string& out) {
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue hardware, Catalogue::Load({data_dir}));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants({data_dir}));
  Recorder recorder{hardware, constants, {data_dir}, {}, {}};
  fmt::print("percent: bias (median), |error| mean, median, p90\n{:<28} {:<9} {:<10} {:>5}        {:<6}  {:<24}   {}\n",
             "set", "family", "rows", "n", "error", "select, whole catalogue", "cost/gemm");
  constexpr std::pair<const char*, DType> kH200[] = {{"cublaslt_bf16", DType::kBf16},
                                                     {"cublaslt_tf32", DType::kTf32},
                                                     {"cublaslt_fp8", DType::kFp8E4m3},
                                                     {"triton_bf16", DType::kBf16}};
  for (const auto& [name, compute] : kH200) {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* h200, hardware.FindAccelerator("h200"));
    const std::string file = fmt::format("{}/measured/h200/{}_seed2.csv", data_dir, name);
    PORTOLAN_ASSIGN_OR_RETURN(const auto rows, ReadCalibrationRows(file, compute, *h200));
    if (rows.empty()) continue;
    const KernelFamily family = rows[0].kernel.family;
    PORTOLAN_ASSIGN_OR_RETURN(const auto shapes, recorder.Learn("h200", family, compute, rows));
    PORTOLAN_RETURN_IF_ERROR(recorder.Record(fmt::format("{}_seed2", name), "h200", family, compute, shapes));
  }
  PORTOLAN_ASSIGN_OR_RETURN(std::vector<MeasuredList> lists, ReadAiterTables(shared, hardware));
  PORTOLAN_ASSIGN_OR_RETURN(MeasuredList tensile, ReadTensileSweep(shared, hardware));
  lists.push_back(std::move(tensile));
  for (MeasuredList& list : lists) {
    // cost/gemm cannot price a product that may use a part of the device.
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* chip, hardware.FindAccelerator(list.chip));
    std::erase_if(list.rows, [&](const CalibrationRow& row) {
      return row.problem.usable_units > 0 && row.problem.usable_units < chip->compute_units;
    });
    if (list.rows.empty()) continue;
    PORTOLAN_ASSIGN_OR_RETURN(const auto shapes, recorder.Learn(list.chip, list.family, list.compute, list.rows));
    PORTOLAN_RETURN_IF_ERROR(recorder.Record(list.name, list.chip, list.family, list.compute, shapes));
  }
  PORTOLAN_ASSIGN_OR_RETURN(const auto sets, ReadMeasuredShapes(shared));
  for (const MeasuredShapes& set : sets) {
    std::vector<Measured> shapes;
    for (const MeasuredShape& row : set.rows) {
      shapes.push_back({ProblemOf(row.shape), row.seconds, set.launch_seconds});
      shapes.back().problem.inputs = set.inputs;
    }
    if (shapes.empty()) continue;
    for (int i = 0; i < kKernelFamilyCount; ++i) {
      PORTOLAN_RETURN_IF_ERROR(
          recorder.Record(set.name, set.chip, static_cast<KernelFamily>(i), shapes[0].problem.compute, shapes));
    }
  }
  if (!out.empty()) {
    PORTOLAN_RETURN_IF_ERROR(
        WriteCatalogueErrors(recorder.errors, date, "catalogue_errors --shared DIR --out FILE", out));
  }
  return 0;
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  CLI::App app{"Errors of the fastest kernel of a whole catalogue, beside cost/gemm"};
  std::string data_dir = PORTOLAN_DATA_DIR, shared = "../shared/data", date, out;
  app.add_option("--date", date, "YYYY-MM-DD, written into the file")->required();
  app.add_option("--out", out, "file to write");
  app.add_option("--data", data_dir, "data folder")->capture_default_str();
  app.add_option("--shared", shared, "folder that holds gemm/ of the data sets")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto result = portolan::Run(data_dir, shared, date, out);
  if (!result) {
    std::fprintf(stderr, "catalogue_errors: %s\n", portolan::FormatError(result.error()).c_str());
    return portolan::ExitCode(result.error().code);
  }
  return *result;
}
