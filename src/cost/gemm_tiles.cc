#include "cost/gemm_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace portolan {
namespace {

constexpr std::array<int, 8> kTileSides = {16, 32, 64, 96, 128, 160, 192, 256};
constexpr int kLargestElementwiseTile = 128;       // libraries build no larger kernels for misaligned rows
constexpr double kVectorBytes = 16.0;              // widest load; bulk copies and direct-to-LDS loads want it too
constexpr double kStepBytes = 128.0;               // bytes of K in a step of the main loop: one memory line
constexpr double kSharedBytesPerClock = 128.0;     // a unit's shared memory, every device described so far
constexpr double kResidentTileElements = 65536.0;  // fp32 accumulators of the tiles that a unit holds: 256 KiB
constexpr double kMostResidentTiles = 4.0;
constexpr double kAccumulatorShare = 0.5;  // of the registers; the rest holds operands and addresses
constexpr double kVectorShare = 0.75;      // assumed, see GemmRate

// Generation of an NVIDIA instruction set ("sm_90" is 90), zero for others.
int SmGeneration(const Accelerator& accelerator) {
  return accelerator.isa.rfind("sm_", 0) == 0 ? std::atoi(accelerator.isa.c_str() + 3) : 0;
}

// NVIDIA's tensor cores give 1024 (sm_70, sm_86, sm_89), 2048 (sm_80), 4096 (sm_90) and 8192 (sm_100) bf16 flops a
// clock and unit; where an accelerator file states no isa, this tells those that read shared memory by themselves.
bool HasBulkMatrixRate(const Accelerator& acc) {
  const double clocks = acc.clock_boost.value * std::max(1, acc.compute_units);
  return clocks > 0.0 && acc.peak_matrix[DType::kBf16].value / clocks > 3000.0;
}

// std::floor and std::ceil of numbers that are not negative, inline on every CPU; they forgive rounding errors of 1e-9.
double Floor(double x) { return static_cast<double>(static_cast<int64_t>(x + 1e-9)); }
double Ceil(double x) {
  const double below = static_cast<double>(static_cast<int64_t>(x - 1e-9));
  return x - 1e-9 > below ? below + 1.0 : below;
}

// A fact that an accelerator leaves at zero switches its term off.
double Inverse(double rate) { return rate > 0.0 ? 1.0 / rate : 0.0; }

// Largest power of two, at most 16, that divides a row of `elements` elements.
double RowAlignment(int64_t elements, double element_bytes) {
  const auto row = static_cast<int64_t>(static_cast<double>(elements) * element_bytes);
  return static_cast<double>(std::min<int64_t>(row & -row, static_cast<int64_t>(kVectorBytes)));
}

// Bytes of an element in its row: block scales of the mx formats are stored apart.
double RowBytes(DType dtype) {
  const bool scaled = dtype == DType::kMxFp8 || dtype == DType::kMxFp6 || dtype == DType::kMxFp4;
  return SizeOf(dtype).value - (scaled ? 1.0 / 32.0 : 0.0);
}

// What the terms need of shape and device, worked out once per estimate.
struct Problem {
  double m, n, k, batch;
  double ragged;         // tiles lost per group to the uneven M of grouped products
  double operand_bytes;  // of the wider operand
  double step_k;         // elements of K in a step
  double units;
  double matrix_rate;           // flops a second and unit
  double seconds_per_l2_byte;   // one unit
  double seconds_per_lds_byte;  // that delays the matrix units of one unit
  double step_s;                // shortest step
  double largest_area;          // of a tile
  double reference_reads;       // rows of operands per element of the largest tile
  double seconds_per_byte_in_flight;
  double lanes;  // element loads a second and unit; zero where vectors serve every row
  bool element_stores;
  double hbm_seconds, write_seconds;
  double refetch_seconds_per_byte;  // zero where the L2 keeps the operands
  double dies;                      // that load operands separately
  double die_l2;                    // bytes of a die's own L2 that may hold operands; zero where they come from memory
  double seconds_per_partial_byte;  // split-K partial sums, whole device
  GemmPipeline pipeline;
};

Problem Describe(const GemmShape& shape, const Accelerator& acc, InputResidency inputs, const GemmConstants& c) {
  Problem p{};
  const double groups = static_cast<double>(std::max<int64_t>(1, shape.groups));
  p.m = static_cast<double>(shape.m) / groups;
  p.n = static_cast<double>(shape.n);
  p.k = static_cast<double>(shape.k);
  p.batch = static_cast<double>(std::max<int64_t>(1, shape.batch)) * groups;
  p.ragged = groups > 1.0 ? 0.5 : 0.0;  // M of a group is uniform over a tile, so the last tile is half empty
  const double a_bytes = SizeOf(shape.a).value, b_bytes = SizeOf(shape.b).value, d_bytes = SizeOf(shape.d).value;
  p.operand_bytes = std::max(a_bytes, b_bytes);
  p.step_k = kStepBytes / p.operand_bytes;

  const int sm = SmGeneration(acc);
  const bool async = sm >= 90 || (sm == 0 && acc.vendor == "nvidia" && HasBulkMatrixRate(acc));
  p.pipeline = async ? c.async : c.issued;
  p.units = std::max(1, acc.compute_units);
  p.matrix_rate = GemmRate(shape.compute, acc).value / p.units;
  p.seconds_per_l2_byte = Inverse(acc.l2_rate.value / p.units * c.l2_unit_share * (async ? c.multicast : 1.0));
  p.seconds_per_lds_byte = p.pipeline.lds_share * Inverse(kSharedBytesPerClock * acc.clock_boost.value);

  // Register-fed matrix units accumulate in registers; the others share a tile between units or have memory of their
  // own.
  const double accumulators = kAccumulatorShare * acc.registers_per_unit.value / 4.0;
  const bool halved = !async && accumulators > 0.0 && accumulators < kResidentTileElements;
  p.largest_area = halved ? kResidentTileElements / 2.0 : kResidentTileElements;
  p.reference_reads = halved ? 1.0 / 128 + 1.0 / 256 : 1.0 / 128;

  // An operand with K = 1 is a vector along its other dimension, however it is stored.
  const bool a_k_contiguous = shape.layout != GemmLayout::kNT && shape.k > 1;
  const bool b_k_contiguous = shape.layout == GemmLayout::kTN && shape.k > 1;
  // Bulk-copied operands of 32 or 8 bits must have K contiguous until sm_100; registers and vector units take any
  // order.
  const bool register_fed = !async && p.operand_bytes >= 4.0;
  const bool has_path = acc.sustained_matrix[shape.compute].value > 0.0;
  const bool any_major = sm >= 100 || p.operand_bytes == 2.0 || register_fed || !has_path;
  p.step_s = p.pipeline.step_s * (p.operand_bytes >= 4.0 && !any_major ? c.wide_step : 1.0);
  if (!any_major && shape.k > 1) {
    const double transposes = (a_k_contiguous ? 0.0 : 1.0) + (b_k_contiguous ? 0.0 : 1.0);
    p.matrix_rate /= 1.0 + c.transpose * transposes * transposes;
  }

  const double align_a = RowAlignment(a_k_contiguous ? shape.k : shape.m, RowBytes(shape.a));
  const double align_b = RowAlignment(b_k_contiguous ? shape.k : shape.n, RowBytes(shape.b));
  const double align_d = RowAlignment(shape.n, RowBytes(shape.d));
  const double align = std::min({align_a, align_b, align_d});
  const bool vector_product = shape.m == 1 || shape.n == 1;  // GEMV kernels read the matrix as one long vector
  if (align < kVectorBytes && !vector_product) {
    p.lanes = acc.clock_boost.value * c.load_lanes * std::pow(std::max(1.0, align / p.operand_bytes), c.load_width);
    p.element_stores = align_d < kVectorBytes;
  }

  const bool reads_operand =
      shape.epilogue == GemmEpilogue::kActivationGradient || shape.epilogue == GemmEpilogue::kAdd;
  const double extra_read = reads_operand ? p.m * p.n * d_bytes : 0.0;
  const double read = p.batch * (p.m * p.k * a_bytes + p.k * p.n * b_bytes + extra_read);
  const double written = p.batch * p.m * p.n * d_bytes;
  const bool private_l2 = acc.mall.value > 0.0 && acc.mall_rate.value > 0.0;  // dies behind a memory-side cache
  const HandoffCache cache = FindHandoffCache(acc);
  const double hit = inputs == InputResidency::kCold || cache.usable.value <= 0.0
                         ? 0.0
                         : std::clamp(2.0 - (read + written) / cache.usable.value, 0.0, 1.0);
  const double write_hit = private_l2 ? 0.0 : hit;  // private L2s are written back at the end of a kernel
  const double hbm_rate = acc.hbm_sustained.value;
  const double read_rate = std::max(hbm_rate, c.read_share * acc.hbm_peak.value);
  p.write_seconds = written * (write_hit / cache.rate.value + (1.0 - write_hit) / hbm_rate);
  p.hbm_seconds = read * (hit / cache.rate.value + (1.0 - hit) / read_rate) + p.write_seconds;

  p.dies = private_l2 ? std::max(1, acc.dies) : 1.0;
  p.die_l2 = private_l2 && inputs != InputResidency::kCold ? acc.l2.value / p.dies : 0.0;
  if (private_l2 || read > 0.8 * acc.l2.value) {
    p.refetch_seconds_per_byte = c.refetch * Inverse(private_l2 ? acc.mall_rate.value : read_rate);
  }
  // Partial sums cross dies, so that only the memory-side cache serves them where L2s are private.
  p.seconds_per_partial_byte = Inverse(private_l2 ? acc.mall_rate.value : acc.l2_rate.value);
  p.seconds_per_byte_in_flight = (private_l2 ? c.memory_latency_dies_s : c.memory_latency_s) *
                                 Inverse(acc.shared_memory_per_unit.value * c.inflight);
  return p;
}

// The part of a tile's cost that its split does not change: seconds per K step, and the traffic of a wave of tiles.
struct Tile {
  int m, n;
  double count;     // over the whole output
  double resident;  // that share a unit
  double matrix, l2, latency, issue, store_issue;
  double traffic;
};

Tile DescribeTile(const Problem& p, int bm, int bn, const GemmConstants& c) {
  Tile tile{};
  tile.m = bm;
  tile.n = bn;
  tile.count = (Ceil(p.m / bm) + p.ragged) * Ceil(p.n / bn) * p.batch;
  const double area = static_cast<double>(bm) * bn;
  const double bytes = (bm + bn) * kStepBytes;
  tile.resident = std::clamp(Floor(kResidentTileElements / area), 1.0, kMostResidentTiles);
  // The sustained rate was measured with the largest tiles and contains their reads; smaller ones read more.
  const double extra_reads = kStepBytes * std::max(0.0, bm + bn - area * p.reference_reads);
  tile.matrix = 2.0 * area * p.step_k / p.matrix_rate + extra_reads * p.seconds_per_lds_byte;
  tile.l2 = bytes * p.seconds_per_l2_byte;
  tile.latency = std::max(p.step_s, bytes * p.seconds_per_byte_in_flight);
  if (p.lanes > 0.0) {
    tile.issue = (bm + bn) * p.step_k / p.lanes;
    tile.store_issue = p.element_stores ? area / p.lanes : 0.0;
  }
  tile.traffic = p.hbm_seconds;
  if (p.refetch_seconds_per_byte > 0.0) {
    // Each die computes a block of tiles, as square as the output allows, and loads its rows of A and columns of B.
    const double per_die = std::min(tile.count, p.units) / p.dies;
    const double rows = std::clamp(std::sqrt(per_die * bn / bm), std::min(1.0, per_die), std::max(1.0, Ceil(p.m / bm)));
    const double wave_bytes = p.dies * (rows * bm + per_die / rows * bn) * p.k * p.operand_bytes;
    if (p.die_l2 > 0.0) {
      const double held = std::clamp(2.0 - p.batch * wave_bytes / (p.dies * p.die_l2), 0.0, 1.0);
      const double share = 1.0 - held * (1.0 - c.die_l2_share);
      tile.l2 *= share;
      tile.latency = std::max(p.step_s, tile.latency * share);
    }
    const double again = std::max(1.0, tile.count / p.units) * wave_bytes * p.refetch_seconds_per_byte;
    tile.traffic = std::max(p.hbm_seconds, again + p.write_seconds);
  }
  return tile;
}

void TrySplit(const Problem& p, const Tile& tile, double split, const GemmConstants& c, GemmTerms& best) {
  const double steps = Ceil(Ceil(p.k / p.step_k) / split);
  const double waves = tile.count * split / p.units;
  const double whole = Ceil(waves);
  const double busy = waves > 1.0 ? whole - c.partial_wave * (whole - waves) : 1.0;  // tiles of the busiest unit
  const double matrix = busy * steps * tile.matrix;
  const double issue = busy * (steps * tile.issue + tile.store_issue);
  const double l2 = busy * steps * tile.l2;
  const double latency = std::max(1.0, busy / tile.resident) * steps * tile.latency;
  const double main = std::max(matrix, issue);
  const double traffic = tile.traffic;
  const double body =
      std::max({std::sqrt(main * main + traffic * traffic + p.pipeline.overlap * main * traffic), l2, latency});
  const double store = c.exposed_store * p.write_seconds;
  // Each fp32 partial sum is written once and read once.
  const double reduction =
      split > 1.0 ? p.pipeline.reduction_s + 2.0 * 4.0 * split * p.m * p.n * p.batch * p.seconds_per_partial_byte : 0.0;
  const double total = body + store + reduction;
  if (total < best.total) {
    best = {tile.m, tile.n, static_cast<int>(split), 0.0, matrix, issue, traffic, l2, latency, store, reduction, total};
  }
}

}  // namespace

FlopsPerSecond GemmRate(DType compute, const Accelerator& accelerator) {
  const FlopsByDType& rates = accelerator.sustained_matrix;
  if (rates[compute].value > 0.0) {
    return rates[compute];
  }
  const FlopsPerSecond half = std::max(rates[DType::kBf16], rates[DType::kFp16]);
  const FlopsPerSecond vector = accelerator.peak_vector_fp32 * kVectorShare;
  switch (compute) {
    case DType::kTf32: {
      const bool native_bf16 = accelerator.peak_matrix[DType::kBf16].value > 0.0;
      return std::max({native_bf16 ? rates[DType::kBf16] / 3.0 : FlopsPerSecond(0.0), rates[DType::kFp32], vector});
    }
    case DType::kFp64:
      return vector / 2.0;
    case DType::kFp32:
    case DType::kInt32:
    case DType::kInt64:
      return vector;
    case DType::kFp8E4m3:
    case DType::kFp8E5m2:
    case DType::kMxFp8:
    case DType::kMxFp6:
    case DType::kMxFp4:
    case DType::kInt8:
      return std::max({rates[DType::kFp8E4m3], rates[DType::kFp8E5m2], half, vector});
    case DType::kFp16:
    case DType::kBf16:
      return std::max(half, vector);
  }
  return vector;
}

GemmTerms GemmBest(const GemmShape& shape, const Accelerator& accelerator, InputResidency inputs,
                   const GemmConstants& constants) {
  GemmTerms best;
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) {
    best.fixed = best.total = accelerator.kernel_fixed.value;
    return best;
  }
  const Problem p = Describe(shape, accelerator, inputs, constants);
  const int largest = p.lanes > 0.0 ? kLargestElementwiseTile : kTileSides.back();
  const double steps = Ceil(p.k / p.step_k);
  best.total = std::numeric_limits<double>::infinity();
  for (const int bm : kTileSides) {
    if (bm > largest || (bm > kTileSides.front() && bm >= 2.0 * p.m)) {
      break;
    }
    for (const int bn : kTileSides) {
      if (bn > largest || (bn > kTileSides.front() && bn >= 2.0 * p.n)) {
        break;
      }
      if (bm * bn > p.largest_area) {
        break;
      }
      const Tile tile = DescribeTile(p, bm, bn, constants);
      TrySplit(p, tile, 1.0, constants, best);
      // Splits worth a look fill the units: half, once, or as often as tiles are resident.
      const double fill = p.units / tile.count;
      double last = 1.0;
      for (const double share : {0.5, 1.0, tile.resident}) {
        const double split = std::min(Floor(fill * share), steps);
        if (split > last) {
          TrySplit(p, tile, split, constants, best);
          last = split;
        }
      }
    }
  }
  best.fixed = accelerator.kernel_fixed.value;
  best.total += best.fixed;
  return best;
}

}  // namespace portolan
