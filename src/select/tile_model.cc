#include "select/tile_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cost/gemm_tiles.h"
#include "cost/memory_bound.h"
#include "select/tile_formula.h"

namespace portolan {

const std::array<ConstantSpec, kTileConstantCount> kTileConstantSpecs = {{
    {"launch_s", 1.6e-6, 2e-7, 6e-6, "s: start of the grid to its first instruction, and its end"},
    {"matrix_share", 1.1, 0.05, 2.0, "of the sustained matrix rate that the instructions reach alone"},
    {"lds_share", 1.0, 0.1, 8.0, "of 128 bytes a clock and unit"},
    {"lds_write", 0.3, 0.01, 3.0, "weight of bytes written to shared memory against bytes read"},
    {"step_s", 5e-8, 2e-9, 1e-6, "s: shortest K step of one work-group"},
    {"latency_s", 6e-7, 5e-8, 4e-6, "s: issue of a tile load to its use"},
    {"prologue_s", 8e-7, 2e-8, 6e-6, "s: first loads of a round"},
    {"epilogue_s", 7e-11, 1e-12, 4e-9, "s an output element of a work-group"},
    {"epilogue_fixed_s", 1e-7, 1e-9, 4e-6, "s a work-group"},
    {"l2_unit_share", 1.0, 0.1, 5.0, "of l2_rate / units that one unit draws"},
    {"l2_share", 1.0, 0.2, 4.0, "of l2_rate that all units draw"},
    {"hbm_share", 0.85, 0.3, 1.3, "of hbm_peak"},
    {"refetch", 0.4, 0.01, 2.0, "share of operand re-reads past the L2 that costs time"},
    {"issue_s", 2e-10, 1e-11, 2e-8, "s to issue 32 vector loads"},
    {"align_a", 0.1, -1.0, 1.5, "log of the issue time a halving of A's row alignment below 16 bytes"},
    {"align_b", 0.1, -1.0, 1.5, "log of the issue time a halving of B's row alignment"},
    {"align_d", 0.1, -1.0, 1.5, "log of the epilogue a halving of D's row alignment"},
    {"layout_nn", 0.0, -1.5, 1.5, "log of the matrix time, NN against TN"},
    {"layout_nt", 0.0, -1.5, 1.5, "log of the matrix time, NT against TN"},
    {"inplace_s", 1e-6, 5e-8, 2e-5, "s a split: parts that add to the output in turn, times sqrt(parts)"},
    {"workspace_s", 2e-6, 5e-8, 2e-5, "s a product: second kernel that adds the partial sums"},
    {"reduction_share", 0.5, 0.05, 4.0, "of l2_rate at which partial sums are written and read"},
    {"narrow", 4.0, 0.3, 20.0, "matrix time of tiles under 64 rows over the same flops of 64"},
    {"eight_warps", 0.0, -1.5, 1.5, "log of the matrix time, 8 warps against 4"},
    {"step_depth", 0.0, -1.0, 1.0, "log of the matrix time per (depth / 64 - 1)"},
    {"atomic", 5.0, 0.5, 20.0, "epilogue of fp32 atomics over that of plain stores"},
}};

namespace {

constexpr double kSharedBytesPerClock = 128.0;  // NVIDIA, every generation described so far
constexpr double kFitStart = 25e6 / 62.9e6,
                 kFitEnd = 45e6 / 62.9e6;  // shares of the L2 between which operands fall out

TileRow RowOf(const TileProblem& p, const TileKernel& k) {
  const size_t layout = static_cast<size_t>(p.layout), path = static_cast<size_t>(k.tile_class);
  TileRow row;
  row.tile_m = k.tile_m, row.tile_n = k.tile_n, row.split = k.split;
  row.inv_tile_m = k.inv_tile_m, row.inv_tile_n = k.inv_tile_n, row.inv_split = k.inv_split;
  row.inv_step_k = k.inv_step_k;
  row.cluster_m = k.cluster_m, row.cluster_n = k.cluster_n;
  row.inv_cluster_m = 1.0 / k.cluster_m, row.inv_cluster_n = 1.0 / k.cluster_n;
  row.units = k.units, row.occupancy = k.occupancy, row.aspect = k.aspect, row.rows_at_once = k.rows_at_once;
  row.matrix = k.matrix[layout];
  row.lds = k.lds, row.l2 = k.l2, row.issue = k.issue, row.step = k.step, row.wait = k.wait;
  row.prologue = k.prologue, row.epilogue_tile = k.epilogue_tile, row.epilogue_fixed = k.epilogue_fixed;
  row.launch = k.launch;
  row.seconds_per_hbm_byte = k.seconds_per_hbm_byte, row.seconds_per_l2_byte = k.seconds_per_l2_byte;
  row.refetch = k.refetch, row.step_l2_bytes = k.step_l2_bytes, row.bytes_k = k.bytes_k;
  row.reduction = k.reduction, row.seconds_per_partial = k.seconds_per_partial;
  row.output_factor = k.output_factor;
  row.atomic = k.atomic ? 1.0 : 0.0, row.stream_k = k.stream_k ? 1.0 : 0.0;
  row.factor = k.factor[layout];
  for (size_t i = 0; i < kSlopeCount; ++i) row.slopes[i] = static_cast<double>(k.slopes[layout][i]);
  row.issue_factor = p.issue_factor[path], row.epilogue_factor = p.epilogue_factor[path];
  return row;
}

// Tiles of a grouped product, where each group rounds up by itself; 0 for one product.
double GroupedTiles(const TileProblem& p, const TileKernel& k) {
  if (p.uneven_groups <= 0.0) return 0.0;
  GemmKernel shape;
  shape.tile_m = static_cast<int16_t>(k.tile_m);
  shape.tile_n = static_cast<int16_t>(k.tile_n);
  return TileCount(*p.source, shape);
}

}  // namespace

TileDevice DescribeTileDevice(const Accelerator& accelerator, DType compute) {
  TileDevice device;
  device.units = std::max(1, accelerator.compute_units);
  device.matrix_rate = GemmRate(compute, accelerator).value / device.units;
  device.lds_rate = kSharedBytesPerClock * accelerator.clock_boost.value;
  device.l2_rate = accelerator.l2_rate.value;
  device.hbm_rate = accelerator.hbm_peak.value;
  device.l2_bytes = accelerator.l2.value;
  device.shared_memory = accelerator.shared_memory_per_unit.value;
  device.registers = accelerator.registers_per_unit.value;
  device.accelerator = accelerator;
  return device;
}

TileProblem DescribeTileProblem(const GemmProblem& problem, const TileDevice& device,
                                std::span<const TileConstants> classes) {
  TileProblem p{};
  const double groups = static_cast<double>(std::max(1, problem.groups));
  p.m = static_cast<double>(problem.m);
  p.n = static_cast<double>(problem.n);
  p.k = static_cast<double>(problem.k);
  p.batch = static_cast<double>(problem.batch);
  p.bytes_a = SizeOf(problem.a).value;
  p.bytes_b = SizeOf(problem.b).value;
  p.bytes_d = SizeOf(problem.d).value;
  p.layout = static_cast<int>(problem.layout);
  p.bits_lost_a = std::log2(16.0 / RowAlignmentA(problem));
  p.bits_lost_b = std::log2(16.0 / RowAlignmentB(problem));
  p.bits_lost_d = std::log2(16.0 / RowAlignmentD(problem));
  p.compulsory = p.batch * (p.m * p.k * p.bytes_a + groups * p.k * p.n * p.bytes_b);
  p.output = p.batch * p.m * p.n * p.bytes_d * OutputPasses(problem);
  p.refetch = device.l2_bytes > 0.0
                  ? std::clamp((p.compulsory / device.l2_bytes - kFitStart) / (kFitEnd - kFitStart), 0.0, 1.0)
                  : 1.0;
  const HandoffCache cache = FindHandoffCache(device.accelerator);
  p.cached = problem.inputs == InputResidency::kCold || cache.usable.value <= 0.0
                 ? 0.0
                 : std::clamp(2.0 - (p.compulsory + p.output) / cache.usable.value, 0.0, 1.0);
  p.usable_share = problem.usable_units > 0 ? std::min(1.0, problem.usable_units / device.units) : 1.0;
  p.uneven_groups = problem.groups > 0 ? groups : 0.0;
  for (size_t i = 0; i < classes.size() && i < kMaxTileClasses; ++i) {
    p.issue_factor[i] = SmallExp(classes[i][kAlignA] * p.bits_lost_a + classes[i][kAlignB] * p.bits_lost_b);
    p.epilogue_factor[i] = SmallExp(classes[i][kAlignD] * p.bits_lost_d);
  }
  const double sheet = device.accelerator.peak_matrix[problem.compute].value;
  const double peak = sheet > 0.0 ? sheet : device.matrix_rate * device.units;  // what stands in for a missing path
  p.floor = peak > 0.0 ? 2.0 * p.m * p.n * p.k * p.batch / peak : 0.0;
  p.clearing = ClearAndConvertSeconds(problem, device.accelerator);
  p.source = &problem;
  return p;
}

KernelTerms EvaluateTile(const TileProblem& problem, const TileKernel& kernel, KernelRegime* regime) {
  const TileRow k = RowOf(problem, kernel);
  const TileTimes r = EvaluateRow(problem, k, GroupedTiles(problem, kernel));
  if (regime != nullptr) *regime = r.regime;
  KernelTerms t;
  const double each = r.grid / r.units;
  t.launch = k.launch;
  t.prologue = r.fixed;
  t.epilogue = r.out;
  t.matrix = each * r.steps * k.matrix;
  t.lds = each * r.steps * k.lds;
  t.l2 = std::max(each * r.steps * k.l2, r.l2);
  t.hbm = r.hbm;
  t.latency = r.waves * r.steps * FourthRoot(r.chain);
  const double even =
      r.waves * r.steps * FourthRoot(Fourth(std::min(k.occupancy, std::max(1.0, each))) * r.shared + r.chain);
  t.wave_quantisation = std::clamp(r.loop - even, 0.0, r.body - r.fixed - r.out);
  t.main_loop = r.body - r.fixed - r.out - t.wave_quantisation;
  t.split_reduction = r.reduction;
  t.clearing = r.clearing;
  t.residual = r.residual;
  t.total = r.total;
  return t;
}

double EvaluateTileTotal(const TileProblem& problem, const TileKernel& kernel) {
  return EvaluateRow(problem, RowOf(problem, kernel), GroupedTiles(problem, kernel)).total;
}

void AddFactors(const FamilyConstants& constants, const std::string& key, TileKernel* kernel, int layout) {
  const auto value = [&](const char* slope) {
    const auto found = constants.factors.find(key + slope);
    return found == constants.factors.end() ? 0.0 : found->second;
  };
  for (int i = 0; i < kLayouts; ++i) {
    if (layout < 0 || layout == i) kernel->factor[static_cast<size_t>(i)] += value("");
  }
  double* const shared[kSlopeCount] = {&kernel->by_depth,    &kernel->by_fill,    &kernel->by_traffic,
                                       &kernel->by_tail,     &kernel->by_depth2,  &kernel->by_fill2,
                                       &kernel->by_traffic2, &kernel->by_breadth, &kernel->by_height};
  for (size_t s = 0; s < kSlopeCount; ++s) {
    const double slope = value(kSlopeSuffixes[s]);
    if (layout < 0) *shared[s] += slope;
    for (int i = 0; i < kLayouts; ++i) {
      if (layout < 0 || layout == i) kernel->slopes[static_cast<size_t>(i)][s] += static_cast<float>(slope);
    }
  }
}

}  // namespace portolan
