#include "select/tile_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cost/gemm_tiles.h"
#include "cost/memory_bound.h"

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
constexpr double kOverlapWait = 1.0 / 3.0;
constexpr double kBelowFloor = 0.01;
constexpr double kFitStart = 25e6 / 62.9e6,
                 kFitEnd = 45e6 / 62.9e6;  // shares of the L2 between which operands fall out

double Fourth(double x) {
  const double square = x * x;
  return square * square;
}
double FourthRoot(double x) { return std::sqrt(std::sqrt(x)); }

// ceil(x inv) where inv = 1 / divisor, forgiving its rounding.
double CeilTimes(double x, double inv) { return static_cast<double>(static_cast<int64_t>(x * inv + (1.0 - 1e-9))); }

// exp(x) for |x| <= 4 to 1e-6: the same bits on every machine, and no call.
double SmallExp(double x) {
  const double y = std::clamp(x, -4.0, 4.0) * (1.0 / 32.0);
  double e = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0)))));
  e *= e;
  e *= e;
  e *= e;
  e *= e;
  return e * e;
}

double Dot(const std::array<float, kSlopeCount>& a, const std::array<double, kSlopeCount>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < kSlopeCount; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// kTerms: fill every field, or only total.
template <bool kTerms>
inline KernelTerms Evaluate(const TileProblem& p, const TileKernel& k, KernelRegime* regime) {
  KernelTerms t;
  double rows = CeilTimes(p.m, k.inv_tile_m);
  double columns = CeilTimes(p.n, k.inv_tile_n);
  if (k.cluster_m > 1.0) rows = CeilTimes(rows, 1.0 / k.cluster_m) * k.cluster_m;
  if (k.cluster_n > 1.0) columns = CeilTimes(columns, 1.0 / k.cluster_n) * k.cluster_n;
  double tiles = rows * columns * p.batch;
  if (p.uneven_groups > 0.0) {
    GemmKernel shape;
    shape.tile_m = static_cast<int16_t>(k.tile_m);
    shape.tile_n = static_cast<int16_t>(k.tile_n);
    tiles = TileCount(*p.source, shape);
  }
  const double grid = tiles * k.split;
  const double steps = CeilTimes(CeilTimes(p.k, k.inv_split), k.inv_step_k);
  const double units = p.usable_share < 1.0 ? std::max(1.0, std::floor(k.units * p.usable_share)) : k.units;
  const double wave = units * k.occupancy;
  const double waves = grid / wave;
  const double full = static_cast<double>(static_cast<int64_t>(waves + 1e-9));
  const double left = grid - full * wave;
  const size_t layout = static_cast<size_t>(p.layout);
  const size_t path = static_cast<size_t>(k.tile_class);

  const double matrix = k.matrix[layout];
  const double issue = k.issue * p.issue_factor[path];
  const double shared = Fourth(matrix) + Fourth(k.lds) + Fourth(k.l2) + Fourth(issue);
  const double alone = k.step + matrix + issue;
  const double wait = k.wait + kOverlapWait * alone;
  const double chain = Fourth(alone) + Fourth(wait);
  const double epilogue = k.epilogue_tile * p.epilogue_factor[path] + k.epilogue_fixed;
  double loop = 0.0, fixed = 0.0, out = 0.0;
  const bool cut = k.stream_k && left > 0.5;
  if (cut) {
    loop = waves * steps * FourthRoot(shared + chain);
    fixed = (full + 1.0) * k.prologue;
    out = std::max(1.0, waves) * epilogue;
  }
  if (full > 0.0 && !cut) {
    loop = full * steps * FourthRoot(Fourth(k.occupancy) * shared + chain);
    fixed = full * k.prologue;
    out = full * k.occupancy * epilogue;
  }
  if (left > 0.5 && !cut) {
    const double resident = CeilTimes(left, 1.0 / units);
    loop += steps * FourthRoot(Fourth(resident) * shared + chain);
    fixed += k.prologue;
    out += resident * epilogue;
  }
  const double busiest = loop + fixed + out;

  double read = p.compulsory;
  if (p.refetch > 0.0) {
    const double at_once = std::min(wave, rows * columns);
    double tall = k.rows_at_once > 0.0 ? k.rows_at_once : std::sqrt(at_once) * k.aspect;
    tall = std::min(std::max(1.0, tall), std::min(rows, at_once));
    const double wide = std::min(at_once / tall, columns);
    tall = std::min(at_once / wide, rows);
    const double again = std::max(1.0, waves) * (tall * k.tile_m + wide * k.tile_n) * p.k * k.bytes_k;
    if (again > read) read += (again - read) * k.refetch * p.refetch;
  }
  const double hbm = (read * (1.0 - p.cached) + p.output * k.output_factor) * k.seconds_per_hbm_byte;
  const double l2 = grid * steps * k.step_l2_bytes * k.seconds_per_l2_byte;
  const double body = FourthRoot(Fourth(busiest) + Fourth(hbm) + Fourth(l2));
  const double reduction = k.split > 1.0 ? k.reduction + k.seconds_per_partial * p.m * p.n * p.batch * k.split
                           : cut         ? k.reduction
                                         : 0.0;
  const double clearing = k.atomic ? p.clearing : 0.0;

  KernelRegime r;
  // Two fractions a division: x / a and y / b from 1 / (a b).
  const double rounds = left > 0.5 ? full + 1.0 : full;
  const double work = 1.0 / ((steps + 16.0) * (waves + 1.0));
  r.depth = steps * (waves + 1.0) * work;
  r.fill = waves * (steps + 16.0) * work;
  const double load = 1.0 / ((hbm + busiest) * rounds);
  r.traffic = hbm * rounds * load;
  r.tail = (rounds - waves) * (hbm + busiest) * load;
  const double grid_shape = 1.0 / ((columns + 4.0) * (rows + 4.0));
  r.breadth = columns * (rows + 4.0) * grid_shape;
  r.height = rows * (columns + 4.0) * grid_shape;
  const double kernel_time = k.launch + body + reduction;
  const double log_factor = k.factor[layout] + Dot(k.slopes[layout], SlopeMultipliers(r));
  t.residual = kernel_time * (SmallExp(log_factor) - 1.0);
  // Factors of code paths that calibration never saw together may promise more than the chip has. Below the floor only
  // the order is kept.
  const double promised = kernel_time + t.residual;
  if (promised < p.floor) t.residual = p.floor * (1.0 - kBelowFloor) + kBelowFloor * promised - kernel_time;
  t.total = kernel_time + t.residual + clearing;
  if constexpr (kTerms) {
    if (regime != nullptr) *regime = r;
    const double each = grid / units;
    t.launch = k.launch;
    t.prologue = fixed;
    t.epilogue = out;
    t.matrix = each * steps * matrix;
    t.lds = each * steps * k.lds;
    t.l2 = std::max(each * steps * k.l2, l2);
    t.hbm = hbm;
    t.latency = waves * steps * FourthRoot(chain);
    const double even = waves * steps * FourthRoot(Fourth(std::min(k.occupancy, std::max(1.0, each))) * shared + chain);
    t.wave_quantisation = std::clamp(loop - even, 0.0, body - fixed - out);
    t.main_loop = body - fixed - out - t.wave_quantisation;
    t.split_reduction = reduction;
    t.clearing = clearing;
  }
  return t;
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

KernelTerms EvaluateTile(const TileProblem& problem, const TileKernel& kernel, const TileDevice&,
                         KernelRegime* regime) {
  return Evaluate<true>(problem, kernel, regime);
}

double EvaluateTileTotal(const TileProblem& problem, const TileKernel& kernel, const TileDevice&) {
  return Evaluate<false>(problem, kernel, nullptr).total;
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
