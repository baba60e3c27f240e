#include "select/measured_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "select/catalogue_csv.h"

namespace portolan {
namespace {

// XLA times one launch without a graph: 3.1 us more than kernel_fixed on both NVIDIA chips (docs/cost-gemm.md).
constexpr double kXlaLaunchSeconds = 3.1e-6;
// The same on gfx950, fitted to its grid (2026-11-30).
constexpr double kXlaLaunchSecondsGfx950 = 0.6e-6;

double Median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

Result<const Accelerator*> Chip(const Catalogue& hardware, const std::string& id) {
  return hardware.FindAccelerator(id);
}

// Index of each kernel id of a catalogue.
std::unordered_map<std::string, size_t> ByName(const std::vector<std::string>& ids) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < ids.size(); ++i) index.emplace(ids[i], i);
  return index;
}

}  // namespace

Result<MeasuredList> ReadTensileSweep(const std::string& data_dir, const Catalogue& hardware) {
  const std::string stem = data_dir + "/gemm/mi350x_tensile_";
  MeasuredList list;
  list.name = "mi350x_tensile_bf16";
  list.chip = "mi350x";
  list.family = KernelFamily::kTensile;
  PORTOLAN_RETURN_IF_ERROR(Chip(hardware, list.chip));
  PORTOLAN_ASSIGN_OR_RETURN(const ProblemList problems, ReadProblems(stem + "shapes.csv"));
  PORTOLAN_ASSIGN_OR_RETURN(const KernelList kernels, ReadKernels(stem + "kernels.csv", list.compute));
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable times, CsvTable::Load(stem + "times.csv"));
  const auto problem_index = ByName(problems.ids);
  const auto kernel_index = ByName(kernels.catalogue.ids);
  std::map<std::pair<size_t, size_t>, std::vector<double>> measured;
  std::map<std::string, int> used;
  for (size_t i = 0; i < times.rows.size(); ++i) {
    CsvRow row(times, i, &used);
    const auto problem = problem_index.find(row.Text("shape_id", ""));
    const auto kernel = kernel_index.find(row.Text("kernel_id", ""));
    const double us = row.Number("us", 0.0);
    if (problem == problem_index.end()) row.Fail("shape_id", "not in the file of shapes");
    if (kernel == kernel_index.end()) row.Fail("kernel_id", "not in the file of kernels");
    if (us <= 0.0) row.Fail("us", "a time above zero is required");
    PORTOLAN_RETURN_IF_ERROR(row.Finish());
    measured[{problem->second, kernel->second}].push_back(us * 1e-6);
  }
  for (auto& [place, seconds] : measured) {
    CalibrationRow row;
    row.problem = problems.problems[place.first];
    row.kernel = kernels.catalogue.kernels[place.second];
    row.seconds = Median(seconds);
    row.list = static_cast<int>(place.first);
    list.rows.push_back(row);
  }
  return list;
}

Result<std::vector<MeasuredList>> ReadAiterTables(const std::string& data_dir, const Catalogue& hardware) {
  const std::string path = data_dir + "/gemm/amd_aiter_winners.csv";
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Load(path));
  PORTOLAN_ASSIGN_OR_RETURN(const KernelList kernels, ReadKernels(path, DType::kBf16));
  std::map<std::string, int> used;

  struct Part {
    MeasuredList list;
    std::map<std::string, int> problems;                               // signature -> list
    std::map<std::pair<int, std::string>, std::vector<double>> times;  // (list, kernel) -> seconds
    std::map<std::pair<int, std::string>, size_t> first;
  };
  std::map<std::string, Part> parts;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    CsvRow row(table, i, &used);
    const std::string gfx = row.Text("gfx", ""), units = row.Text("cu_num", "");
    const std::string chip = gfx == "gfx950" ? "mi355x" : gfx == "gfx942" ? "mi300x" : "";
    if (chip.empty()) continue;
    const DType compute = kernels.catalogue.kernels[i].compute;
    const std::string part_name = fmt::format("aiter_{}_{}_{}", gfx, units, DTypeName(compute));
    Part& part = parts[part_name];
    part.list.name = part_name;
    part.list.chip = chip;
    part.list.family = KernelFamily::kAiter;
    part.list.compute = compute;
    std::string signature;
    for (const char* column : {"b_type", "quant", "out_type", "bias", "bpreshuffle", "m", "n", "k", "batch"}) {
      signature += row.Text(column, "") + "|";
    }
    const std::string kernel = row.Text("lib", "") + "|" + row.Text("split_k", "") + "|" + row.Text("kernel_id", "");
    const double us = row.Number("us", 0.0);
    if (us <= 0.0) row.Fail("us", "a time above zero is required");
    PORTOLAN_RETURN_IF_ERROR(row.Finish());
    const int problem = part.problems.try_emplace(signature, static_cast<int>(part.problems.size())).first->second;
    part.times[{problem, kernel}].push_back(us * 1e-6);
    part.first.try_emplace({problem, kernel}, i);
  }
  std::vector<MeasuredList> lists;
  for (auto& [name, part] : parts) {
    PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, Chip(hardware, part.list.chip));
    for (auto& [key, seconds] : part.times) {
      const size_t i = part.first[key];
      CsvRow row(table, i, &used);
      CalibrationRow timed;
      timed.problem = kernels.tied_problem[i];
      const int64_t units = row.Integer("cu_num", {1, 1 << 16});
      PORTOLAN_RETURN_IF_ERROR(row.Finish());
      if (units != accelerator->compute_units) timed.problem.usable_units = static_cast<int32_t>(units);
      timed.kernel = kernels.catalogue.kernels[i];
      timed.seconds = Median(seconds);
      timed.list = key.first;
      part.list.rows.push_back(timed);
    }
    lists.push_back(std::move(part.list));
  }
  return lists;
}

Result<std::vector<MeasuredList>> ReadH200Lists(const std::string& data_dir, const Catalogue& hardware) {
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* chip, Chip(hardware, "h200"));
  constexpr std::tuple<const char*, KernelFamily, DType> kFiles[] = {
      {"h200_triton_bf16", KernelFamily::kTriton, DType::kBf16},
      {"h200_cublaslt_bf16", KernelFamily::kCublasLt, DType::kBf16},
      {"h200_cublaslt_tf32", KernelFamily::kCublasLt, DType::kTf32},
      {"h200_cublaslt_fp8", KernelFamily::kCublasLt, DType::kFp8E4m3},
  };
  std::vector<MeasuredList> lists;
  for (const auto& [name, family, compute] : kFiles) {
    MeasuredList list;
    list.name = name;
    list.chip = chip->id;
    list.family = family;
    list.compute = compute;
    PORTOLAN_ASSIGN_OR_RETURN(list.rows,
                              ReadCalibrationRows(fmt::format("{}/gemm/{}.csv", data_dir, name), compute, *chip));
    lists.push_back(std::move(list));
  }
  return lists;
}

void JudgeListsOf(int least, std::vector<CalibrationRow>* rows) {
  std::unordered_map<int, int> candidates;
  for (const CalibrationRow& row : *rows) ++candidates[row.list];
  for (CalibrationRow& row : *rows) row.judged = candidates[row.list] >= least;
}

Result<std::vector<MeasuredShapes>> ReadMeasuredShapes(const std::string& data_dir) {
  std::map<std::string, int> used;
  std::vector<MeasuredShapes> sets;
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable grid, CsvTable::Load(data_dir + "/gemm/matmul_grid_gfx950_b200_h100.csv"));
  constexpr std::tuple<const char*, const char*, const char*, DType, double> kGrids[] = {
      {"sm_90", "h100", "bf16", DType::kBf16, kXlaLaunchSeconds},
      {"sm_100_B200", "b200", "bf16", DType::kBf16, kXlaLaunchSeconds},
      {"gfx950", "mi355x", "bf16", DType::kBf16, kXlaLaunchSecondsGfx950},
      {"sm_100_B200", "b200", "f8e4m3fn", DType::kFp8E4m3, kXlaLaunchSeconds},
  };
  for (const auto& [device, chip, type, compute, launch] : kGrids) {
    MeasuredShapes set;
    set.name = fmt::format("grid_{}_{}", chip, DTypeName(compute));
    set.chip = chip;
    set.inputs = InputResidency::kJustProduced;
    set.launch_seconds = launch;
    for (size_t i = 0; i < grid.rows.size(); ++i) {
      CsvRow row(grid, i, &used);
      if (row.Text("device", "") != device || row.Text("lhs", "") != type || row.Text("rhs", "") != type) continue;
      if (row.Text("out", "") != "bf16") continue;
      MeasuredShape measured;
      measured.shape.batch = row.Integer("b", {1, 1 << 20});
      measured.shape.m = row.Integer("m", {1, 1 << 30});
      measured.shape.n = row.Integer("n", {1, 1 << 30});
      measured.shape.k = row.Integer("k", {1, 1 << 30});
      measured.shape.layout = compute == DType::kBf16 ? GemmLayout::kNN : GemmLayout::kTN;
      measured.shape.a = measured.shape.b = measured.shape.compute = compute;
      measured.shape.d = DType::kBf16;
      measured.seconds = row.Number("us", 0.0) * 1e-6;
      PORTOLAN_RETURN_IF_ERROR(row.Finish());
      set.rows.push_back(measured);
    }
    sets.push_back(std::move(set));
  }
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable winners, CsvTable::Load(data_dir + "/gemm/mi355x_hipblaslt_recsys.csv"));
  used.clear();  // columns of another table
  MeasuredShapes recsys;
  recsys.name = "recsys_mi355x_bf16";
  recsys.chip = "mi355x";
  for (size_t i = 0; i < winners.rows.size(); ++i) {
    CsvRow row(winners, i, &used);
    if (row.Text("a_type", "") != "bf16") continue;
    MeasuredShape measured;
    measured.shape.m = row.Integer("n", {1, 1 << 30});  // BLAS sizes
    measured.shape.n = row.Integer("m", {1, 1 << 30});
    measured.shape.k = row.Integer("k", {1, 1 << 30});
    measured.shape.batch = row.Integer("batch", {1, 1 << 20}, 1);
    measured.shape.layout = row.Text("transB", "N") == "T"   ? GemmLayout::kNT
                            : row.Text("transA", "N") == "T" ? GemmLayout::kTN
                                                             : GemmLayout::kNN;
    measured.shape.d = row.Text("d_type", "") == "f32" ? DType::kFp32 : DType::kBf16;
    measured.seconds = row.Number("us", 0.0) * 1e-6;
    PORTOLAN_RETURN_IF_ERROR(row.Finish());
    recsys.rows.push_back(measured);
  }
  sets.push_back(std::move(recsys));
  return sets;
}

}  // namespace portolan
