#pragma once

#include <array>

#include "base/cpu_clones.h"
#include "select/tile_model.h"

namespace portolan {

// One kernel as the formula reads it, with what depends on the problem's layout and the kernel's class picked out. All
// doubles and no branches on them, so that a loop over kernels becomes vector instructions (tile_lanes.cc).
struct TileRow {
  double tile_m, tile_n, split, inv_tile_m, inv_tile_n, inv_split, inv_step_k;
  double cluster_m, cluster_n, inv_cluster_m, inv_cluster_n;
  double units, occupancy, aspect, rows_at_once;
  double matrix, lds, l2, issue, step, wait;
  double prologue, epilogue_tile, epilogue_fixed, launch;
  double seconds_per_hbm_byte, seconds_per_l2_byte, refetch, step_l2_bytes, bytes_k;
  double reduction, seconds_per_partial, output_factor;
  double atomic, stream_k;  // 0 or 1
  double factor;
  std::array<double, kSlopeCount> slopes;
  double issue_factor, epilogue_factor;
};

// Seconds, and the sizes that they come from.
struct TileTimes {
  double grid, steps, units, waves;
  double shared, chain, loop, fixed, out, hbm, l2, body, reduction, clearing, residual, total;
  KernelRegime regime;
};

PORTOLAN_CPU_INLINE double Fourth(double x) {
  const double square = x * x;
  return square * square;
}
PORTOLAN_CPU_INLINE double FourthRoot(double x) { return __builtin_sqrt(__builtin_sqrt(x)); }
// Both sides are worked out: a choice, no branch.
PORTOLAN_CPU_INLINE double Select(bool condition, double yes, double no) { return condition ? yes : no; }
PORTOLAN_CPU_INLINE double Smaller(double a, double b) { return b < a ? b : a; }
PORTOLAN_CPU_INLINE double Larger(double a, double b) { return a < b ? b : a; }

// The whole part of x from 0 to 2^51; no conversion to an integer, which AVX2 has not.
PORTOLAN_CPU_INLINE double WholePart(double x) {
  constexpr double kRoundToWhole = 6755399441055744.0;  // 1.5 * 2^52: sums with it have no fraction
  const double nearest = (x + kRoundToWhole) - kRoundToWhole;
  return nearest - (nearest > x ? 1.0 : 0.0);
}

// ceil(x inv) where inv = 1 / divisor, forgiving its rounding.
PORTOLAN_CPU_INLINE double CeilTimes(double x, double inv) { return WholePart(x * inv + (1.0 - 1e-9)); }

// exp(x) for |x| <= 4 to 1e-6: the same bits on every machine, and no call.
PORTOLAN_CPU_INLINE double SmallExp(double x) {
  const double y = Smaller(Larger(x, -4.0), 4.0) * (1.0 / 32.0);
  double e = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0)))));
  e *= e;
  e *= e;
  e *= e;
  e *= e;
  return e * e;
}

// The time of one kernel, seconds (terms.h names the parts, docs/select.md the assumptions). `grouped_tiles` > 0: the
// tiles of a grouped product.
PORTOLAN_CPU_INLINE TileTimes EvaluateRow(const TileProblem& p, const TileRow& k, double grouped_tiles) {
  constexpr double kOverlapWait = 1.0 / 3.0;
  constexpr double kBelowFloor = 0.01;
  TileTimes t;
  const double whole_rows = CeilTimes(p.m, k.inv_tile_m);
  const double whole_columns = CeilTimes(p.n, k.inv_tile_n);
  const double cluster_rows = CeilTimes(whole_rows, k.inv_cluster_m) * k.cluster_m;
  const double cluster_columns = CeilTimes(whole_columns, k.inv_cluster_n) * k.cluster_n;
  const double rows = Select(k.cluster_m > 1.0, cluster_rows, whole_rows);
  const double columns = Select(k.cluster_n > 1.0, cluster_columns, whole_columns);
  const double tiles = Select(grouped_tiles > 0.0, grouped_tiles, rows * columns * p.batch);
  t.grid = tiles * k.split;
  t.steps = CeilTimes(CeilTimes(p.k, k.inv_split), k.inv_step_k);
  const double share = WholePart(k.units * p.usable_share);
  t.units = Select(p.usable_share < 1.0, Larger(1.0, share), k.units);
  const double wave = t.units * k.occupancy;
  t.waves = t.grid / wave;
  const double full = WholePart(t.waves + 1e-9);
  const double left = t.grid - full * wave;
  const bool any_full = full > 0.0, any_left = left > 0.5, cut = (k.stream_k > 0.0) & any_left;

  const double issue = k.issue * k.issue_factor;
  t.shared = Fourth(k.matrix) + Fourth(k.lds) + Fourth(k.l2) + Fourth(issue);
  const double alone = k.step + k.matrix + issue;
  const double wait = k.wait + kOverlapWait * alone;
  t.chain = Fourth(alone) + Fourth(wait);
  const double epilogue = k.epilogue_tile * k.epilogue_factor + k.epilogue_fixed;
  // Whole waves and the partial last one; a stream-K grid that would leave a partial wave cuts tiles instead.
  const double resident = CeilTimes(left, 1.0 / t.units);
  const double per_full = FourthRoot(Select(cut, 1.0, Fourth(k.occupancy)) * t.shared + t.chain);
  const double per_left = FourthRoot(Fourth(resident) * t.shared + t.chain);
  const double full_loop = Select(any_full, full * t.steps * per_full, 0.0);
  const double left_loop = Select(any_left, t.steps * per_left, 0.0);
  t.loop = Select(cut, t.waves * t.steps * per_full, full_loop + left_loop);
  const double full_out = Select(any_full, full * k.occupancy * epilogue, 0.0);
  const double left_out = Select(any_left, resident * epilogue, 0.0);
  t.out = Select(cut, Larger(1.0, t.waves) * epilogue, full_out + left_out);
  const double full_fixed = Select(any_full, full * k.prologue, 0.0);
  const double left_fixed = Select(any_left, k.prologue, 0.0);
  t.fixed = Select(cut, (full + 1.0) * k.prologue, full_fixed + left_fixed);
  const double busiest = t.loop + t.fixed + t.out;

  const double at_once = Smaller(wave, rows * columns);
  const double square = __builtin_sqrt(at_once) * k.aspect;
  const double wanted = Select(k.rows_at_once > 0.0, k.rows_at_once, square);
  const double first_tall = Smaller(Larger(1.0, wanted), Smaller(rows, at_once));
  const double wide = Smaller(at_once / first_tall, columns);
  const double tall = Smaller(at_once / wide, rows);
  const double again = Larger(1.0, t.waves) * (tall * k.tile_m + wide * k.tile_n) * p.k * k.bytes_k;
  const double with_again = p.compulsory + (again - p.compulsory) * k.refetch * p.refetch;
  const double read = Select(again > p.compulsory, with_again, p.compulsory);
  t.hbm = (read * (1.0 - p.cached) + p.output * k.output_factor) * k.seconds_per_hbm_byte;
  t.l2 = t.grid * t.steps * k.step_l2_bytes * k.seconds_per_l2_byte;
  t.body = FourthRoot(Fourth(busiest) + Fourth(t.hbm) + Fourth(t.l2));
  const double partials = k.reduction + k.seconds_per_partial * p.m * p.n * p.batch * k.split;
  const double of_cut = Select(cut, k.reduction, 0.0);
  t.reduction = Select(k.split > 1.0, partials, of_cut);
  t.clearing = Select(k.atomic > 0.0, p.clearing, 0.0);

  KernelRegime& r = t.regime;
  // Two fractions a division: x / a and y / b from 1 / (a b).
  const double rounds = Select(any_left, full + 1.0, full);
  const double work = 1.0 / ((t.steps + 16.0) * (t.waves + 1.0));
  r.depth = t.steps * (t.waves + 1.0) * work;
  r.fill = t.waves * (t.steps + 16.0) * work;
  const double load = 1.0 / ((t.hbm + busiest) * rounds);
  r.traffic = t.hbm * rounds * load;
  r.tail = (rounds - t.waves) * (t.hbm + busiest) * load;
  const double grid_shape = 1.0 / ((columns + 4.0) * (rows + 4.0));
  r.breadth = columns * (rows + 4.0) * grid_shape;
  r.height = rows * (columns + 4.0) * grid_shape;
  const double kernel_time = k.launch + t.body + t.reduction;
  const std::array<double, kSlopeCount> multipliers = SlopeMultipliers(r);
  double sloped = 0.0;
  for (size_t i = 0; i < kSlopeCount; ++i) sloped += k.slopes[i] * multipliers[i];
  const double residual = kernel_time * (SmallExp(k.factor + sloped) - 1.0);
  // Factors of code paths that calibration never saw together may promise more than the chip has. Below the floor only
  // the order is kept.
  const double promised = kernel_time + residual;
  const double at_floor = p.floor * (1.0 - kBelowFloor) + kBelowFloor * promised - kernel_time;
  t.residual = Select(promised < p.floor, at_floor, residual);
  t.total = kernel_time + t.residual + t.clearing;
  return t;
}

}  // namespace portolan
