#include "cost/embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "cost/memory_bound.h"

namespace portolan {
namespace {

// Constants fitted on 2026-11-30 to data/measured/h200/memory.json (NVIDIA H200, driver 580.159.04, program
// tools/measure_gpu); each says which records. docs/cost-memory.md gives the errors on the records not used.

// Smallest piece that the L2 reads. gather_pool, Zipf, pooling 20: rows of 16 to 64 B take the same time.
constexpr Bytes kCacheSector{32};

// Share of a cache that holds rows read before; the rest goes to indices, outputs and conflicts. gather_pool over a
// table of 64 MiB on a 60 MiB L2.
constexpr double kUsableGatherShare = 0.5;

// Time from the load of an index to the arrival of its row under full load; a lane waits that long for each round of
// kRowsInFlight rows. gather_pool, uniform rows of 128 to 512 B, pooling 1.
constexpr Seconds kRoundLatency{2.1e-6};
constexpr double kRowsInFlight = 8;     // independent rows that a lane loads in one round (unrolling)
constexpr double kLanesPerUnit = 2048;  // resident lanes of an SM (64 warps of 32) or a CU (32 waves of 64)
constexpr Bytes kBytesPerLaneLoad{16};

// What a gather takes beyond a stream to fill and drain (offset, index, row: loads that wait for each other).
// gather_pool, 4096 and 16384 lookups.
constexpr Seconds kGatherRamp{0.8e-6};

// The limits of one kernel (HBM, caches, lanes) get in each other's way: time = (sum of limit^p)^(1/p). p = infinity
// would be perfect overlap. gather_pool, uniform rows, pooling 1.
constexpr double kOverlapExponent = 4.0;

// Rows that one compute unit starts per clock: the fastest seen (32 B rows, Zipf: 96e9 rows/s) rounded up.
constexpr double kRowsPerUnitAndClock = 0.4;

// Bandwidth of a radix pass over hbm_sustained (the scattered writes go out in short runs), and the time of a pass of
// few keys (look-back chain of the single-pass scan). sort_pairs, 2^16 to 2^24 items, 24 and 32 bits.
constexpr double kSortBandwidthShare = 0.65;
constexpr Seconds kSortPassLatency{9.5e-6};

// Kernels of a backward pass besides the radix passes, memory sets included: linearise; histogram, its sum and two sets
// of the sort; run lengths and their sum, two each; three for the update (short runs, long runs, rows of long runs).
constexpr double kBackwardKernels = 12;
constexpr double kUpdateKernels = 3;  // of them

// Library kernels against the limits above. 0.95 (uniform) to 1.2 (Zipf) for the kernels of tools/measure_gpu on H200,
// 1.5 for FBGEMM's on H100 (NVIDIA/recsys-examples, dynamicemb benchmark: backward 0.614 ms SGD, 1.005 ms Adam); the
// middle.
constexpr double kUpdateGap = 1.3;

// Lookups of one row that a single thread block adds one after the other; longer runs are split over blocks (FBGEMM's
// max_segment_length_per_cta), and what a block then reads per clock.
constexpr double kLongestSerialRun = 1024;
constexpr Bytes kSerialBytesPerClock{32};

constexpr int kReuseBins = 18;

struct ReuseClass {
  double rows = 0;   // distinct rows, of one table
  double count = 0;  // lookups of each
};

double TotalShare(const EmbeddingShape& shape) {
  double total = 0;
  for (double share : shape.reuse_share) total += share;
  return total;
}

// Lookups of a row in bin i, (2^(i-1), 2^i]: 1 in bin 0, else 1.5 x 2^(i-1) (the middle).
double BinCount(int bin) { return bin == 0 ? 1.0 : 1.5 * std::exp2(bin - 1); }

// A Zipf law P(rank) ~ rank^-exponent over `rows` rows, cut into octaves of ranks.
class ZipfLaw {
 public:
  ZipfLaw(double lookups, double rows) : lookups_(lookups) {
    for (double first = 1; first <= rows; first *= 2) {
      const double next = std::min(2 * first, rows + 1);
      rows_.push_back(next - first);
      log_ends_.push_back(std::log(next - 0.5));
    }
  }
  // Per octave its rows and the expected lookups of each. Sums of rank^-exponent by the integral from first - 1/2 to
  // last + 1/2.
  std::vector<ReuseClass> Classes(double exponent) const {
    const double power = 1.0 - exponent;
    const auto integral_from_1 = [power](double log_x) {
      return std::abs(power) < 1e-9 ? log_x : std::expm1(power * log_x) / power;
    };
    const double begin = integral_from_1(std::log(0.5));
    const double total = integral_from_1(log_ends_.back()) - begin;
    double from = begin;
    std::vector<ReuseClass> classes;
    classes.reserve(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const double to = integral_from_1(log_ends_[i]);
      classes.push_back({rows_[i], lookups_ * (to - from) / total / rows_[i]});
      from = to;
    }
    return classes;
  }

 private:
  double lookups_;
  std::vector<double> rows_;
  std::vector<double> log_ends_;
};

double TouchedRows(const std::vector<ReuseClass>& classes) {
  double touched = 0;
  for (const ReuseClass& c : classes) touched += c.rows * -std::expm1(-c.count);
  return touched;
}

// The Zipf law over `rows` rows of which `lookups` draws touch `unique` rows, as rows that were touched and how often.
// Bracketing secant steps (Illinois); touched rows fall as the exponent grows. Empty when no exponent up to 4 gives so
// few rows.
std::vector<ReuseClass> FittedZipfClasses(double lookups, double rows, double unique) {
  constexpr double kMaxExponent = 4.0;
  constexpr double kTolerance = 1e-3;
  const ZipfLaw law(lookups, rows);
  const auto excess = [&](double exponent) { return TouchedRows(law.Classes(exponent)) - unique; };
  double low = 0.0;
  double high = kMaxExponent;
  double at_low = excess(low);
  double at_high = excess(high);
  if (at_low <= 0 || at_high >= 0) return {};
  double exponent = low;
  for (int step = 0; step < 60; ++step) {
    exponent = (low * at_high - high * at_low) / (at_high - at_low);
    const double here = excess(exponent);
    if (std::abs(here) <= kTolerance * unique) break;
    if (here > 0) {
      low = exponent;
      at_low = here;
      at_high *= 0.5;
    } else {
      high = exponent;
      at_high = here;
      at_low *= 0.5;
    }
  }
  std::vector<ReuseClass> classes = law.Classes(exponent);
  for (ReuseClass& c : classes) {
    const double touched_share = -std::expm1(-c.count);
    c = touched_share > 0 ? ReuseClass{c.rows * touched_share, c.count / touched_share} : ReuseClass{0, 1};
  }
  return classes;
}

// FittedZipfClasses, and its last answer again: a table's lookup and update ask the same, and so do equal tables.
std::vector<ReuseClass> RememberedZipfClasses(double lookups, double rows, double unique) {
  thread_local std::array<double, 3> asked = {-1, -1, -1};
  thread_local std::vector<ReuseClass> answer;
  const std::array<double, 3> question = {lookups, rows, unique};
  if (asked != question) answer = FittedZipfClasses(lookups, rows, unique);
  asked = question;
  return answer;
}

// Reuse classes of one table; their rows add up to unique_rows / tables and their lookups to lookups / tables.
std::vector<ReuseClass> ReuseClasses(const EmbeddingShape& shape) {
  const double tables = static_cast<double>(std::max<int64_t>(shape.tables, 1));
  const double lookups = shape.lookups / tables;
  const double unique = std::clamp(shape.unique_rows / tables, std::min(lookups, 1.0), lookups);
  std::vector<ReuseClass> classes;
  if (const double total = TotalShare(shape); total > 0) {
    for (int bin = 0; bin < kReuseBins; ++bin) {
      const double share = shape.reuse_share[bin] / total;
      if (share > 0) classes.push_back({lookups * share / BinCount(bin), BinCount(bin)});
    }
  } else {
    const double rows = shape.table_rows / tables;
    const double uniform = rows > 0 ? rows * -std::expm1(-lookups / rows) : 0.0;
    if (rows >= 2 && unique < 0.98 * uniform) classes = RememberedZipfClasses(lookups, rows, unique);
    if (classes.empty()) return {{unique, lookups / unique}};
  }
  // The above does not conserve unique_rows and lookups exactly: scale rows, then counts.
  double rows = 0;
  for (const ReuseClass& c : classes) rows += c.rows;
  if (rows <= 0) return {{unique, lookups / unique}};
  double extra = 0;
  for (ReuseClass& c : classes) {
    c.rows *= unique / rows;
    extra += c.rows * (c.count - 1);
  }
  const double stretch = extra > 0 ? (lookups - unique) / extra : 0.0;
  for (ReuseClass& c : classes) c.count = std::max(1.0, 1.0 + (c.count - 1.0) * stretch);
  return classes;
}

double HottestCount(const std::vector<ReuseClass>& classes) {
  double hottest = 0;
  for (const ReuseClass& c : classes) hottest = std::max(hottest, c.count);
  return hottest;
}

// The share of the launch for which a cache of `capacity` rows holds a row; infinity when it holds all of them. The
// rows held are a concave function of it, so that Newton's steps from 0 rise to the solution.
double CacheWindow(const std::vector<ReuseClass>& classes, double capacity) {
  double all_rows = 0;
  for (const ReuseClass& c : classes) all_rows += c.rows;
  if (all_rows <= capacity) return std::numeric_limits<double>::infinity();
  double window = 0;
  for (int step = 0; step < 60; ++step) {
    double held = 0;
    double slope = 0;
    for (const ReuseClass& c : classes) {
      const double gone = std::exp(-c.count * window);
      held += c.rows * (1.0 - gone);
      slope += c.rows * c.count * gone;
    }
    if (slope <= 0 || capacity - held <= 1e-6 * capacity) break;
    window += (capacity - held) / slope;
  }
  return window;
}

RowReuse LruReuse(const std::vector<ReuseClass>& classes, double tables, Bytes usable, Bytes row_bytes) {
  const double window = CacheWindow(classes, usable / row_bytes);
  RowReuse reuse;
  for (const ReuseClass& c : classes) {
    const double again = c.rows * std::max(c.count - 1.0, 0.0);
    const double hits = again * (1.0 - std::exp(-c.count * window));
    reuse.hits += tables * hits;
    reuse.misses += tables * (c.rows + again - hits);
  }
  return reuse;
}

Bytes RoundUp(Bytes bytes, Bytes unit) {
  if (bytes <= Bytes(0) || unit <= Bytes(0)) return bytes;
  return std::ceil(bytes / unit - 1e-9) * unit;
}

double TableCount(const EmbeddingShape& shape) { return static_cast<double>(std::max<int64_t>(shape.tables, 1)); }

// What one kernel asks of each part of the memory system.
struct Demand {
  Bytes hbm_read;
  Bytes hbm_written;
  Bytes mall;
  Bytes l2;
  Bytes lanes;  // loads that wait for a load before them
  double rows = 0;
};

void AddStream(Bytes read, Bytes written, Demand& demand) {
  demand.hbm_read += read;
  demand.hbm_written += written;
  demand.l2 += read + written;
}

// What the lanes of at most one wave hold of a row at a time.
Bytes LaneBytes(Bytes row, const Accelerator& accelerator) {
  return std::clamp(row, kBytesPerLaneLoad, std::max(accelerator.wave_size, 1) * kBytesPerLaneLoad);
}

// Reads of rows of `row` bytes at random places, some of them repeated, `rounds` of them one after the other in a lane.
void AddGather(const std::vector<ReuseClass>& classes, double tables, Bytes row, double rounds,
               const Accelerator& accelerator, Demand& demand) {
  const Bytes lines = RoundUp(row, accelerator.memory_line);
  const Bytes sectors = RoundUp(row, kCacheSector);
  // Dies do not share their L2s: a row is held by each die that reads it.
  const Bytes l2_usable = kUsableGatherShare * accelerator.l2 / std::max(accelerator.dies, 1);
  const Bytes mall_usable = kUsableGatherShare * accelerator.mall;
  const RowReuse l2 = LruReuse(classes, tables, l2_usable, sectors);
  const RowReuse last = LruReuse(classes, tables, std::max(l2_usable, mall_usable), sectors);
  demand.hbm_read += last.misses * lines;
  if (accelerator.mall > Bytes(0)) demand.mall += l2.misses * lines;
  demand.l2 += (l2.hits + l2.misses) * sectors;
  demand.lanes += rounds * LaneBytes(row, accelerator);
  demand.rows += l2.hits + l2.misses;
}

// Read and write of `row` bytes for each of `rows` rows at random places.
void AddUpdate(double rows, Bytes row, const Accelerator& accelerator, Demand& demand) {
  if (row <= Bytes(0)) return;
  demand.hbm_read += rows * RoundUp(row, accelerator.memory_line);
  demand.hbm_written += rows * RoundUp(row, accelerator.memory_line);
  demand.l2 += 2.0 * rows * RoundUp(row, kCacheSector);
}

Seconds DemandSeconds(const Demand& demand, const Accelerator& accelerator) {
  const BytesPerSecond hbm_rate = accelerator.hbm_sustained;
  const BytesPerSecond mall_rate = std::max(accelerator.mall_rate, hbm_rate);
  const BytesPerSecond l2_rate = std::max(accelerator.l2_rate, hbm_rate);
  const double units = std::max(accelerator.compute_units, 1);
  const BytesPerSecond lane_rate = units * kLanesPerUnit * kBytesPerLaneLoad / kRoundLatency;
  double sum = 0;
  const auto add = [&sum](Seconds limit) { sum += std::pow(limit.value, kOverlapExponent); };
  add(HbmSeconds(demand.hbm_read, demand.hbm_written, accelerator));
  add(demand.mall / mall_rate);
  add(demand.l2 / l2_rate);
  add(demand.lanes / lane_rate);
  const Seconds together(std::pow(sum, 1.0 / kOverlapExponent));
  if (accelerator.clock_boost <= Hertz(0)) return together;
  const Hertz rows_per_s = kRowsPerUnitAndClock * units * accelerator.clock_boost;
  return std::max(together, Seconds(demand.rows / rows_per_s.value));
}

// Rounds of dependent row loads when each of a class's rows is the sum of `count` loads.
double Rounds(const std::vector<ReuseClass>& classes, double tables) {
  double rounds = 0;
  for (const ReuseClass& c : classes) rounds += tables * c.rows * std::max(1.0, c.count / kRowsInFlight);
  return rounds;
}

// The same for `owners` that share `lookups` evenly.
double Rounds(double owners, double lookups) { return std::max(owners, lookups / kRowsInFlight); }

}  // namespace

RowReuse EmbeddingRowReuse(const EmbeddingShape& shape, Bytes usable, Bytes row_bytes) {
  PORTOLAN_CHECK(row_bytes > Bytes(0), "a row has at least one byte");
  if (shape.lookups <= 0) return {};
  return LruReuse(ReuseClasses(shape), TableCount(shape), usable, row_bytes);
}

double EmbeddingHottestRowLookups(const EmbeddingShape& shape) {
  if (shape.lookups <= 0) return 0;
  return HottestCount(ReuseClasses(shape));
}

Estimate EmbeddingForwardEstimate(const EmbeddingShape& shape, const Accelerator& accelerator) {
  Estimate estimate;
  if (shape.lookups <= 0 || shape.dim <= 0) return estimate;
  const Work work = EmbeddingForwardWork(shape);
  const Bytes row = static_cast<double>(shape.dim) * SizeOf(shape.row);
  Demand demand;
  AddStream(work.read - shape.lookups * row, work.written, demand);
  AddGather(ReuseClasses(shape), TableCount(shape), row, Rounds(shape.bags, shape.lookups), accelerator, demand);
  estimate.launch = accelerator.kernel_fixed + kGatherRamp;
  estimate.memory = DemandSeconds(demand, accelerator);
  estimate.compute = ComputeSeconds(work, accelerator);
  estimate.total = estimate.launch + std::max(estimate.memory, estimate.compute);
  return estimate;
}

Estimate EmbeddingSortEstimate(const EmbeddingShape& shape, const Accelerator& accelerator) {
  Estimate estimate;
  if (shape.lookups <= 0 || shape.dim <= 0) return estimate;
  const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(shape, EmbeddingOptimizer::kSgd);
  estimate.launch = (kBackwardKernels - kUpdateKernels + traffic.sort_passes) * accelerator.kernel_fixed +
                    traffic.sort_passes * kSortPassLatency;
  estimate.memory = HbmSeconds(0.5 * traffic.sort, 0.5 * traffic.sort, accelerator) / kSortBandwidthShare;
  estimate.total = estimate.launch + estimate.memory;
  return estimate;
}

Estimate EmbeddingUpdateEstimate(const EmbeddingShape& shape, EmbeddingOptimizer optimizer,
                                 const Accelerator& accelerator) {
  Estimate estimate;
  if (shape.lookups <= 0 || shape.dim <= 0) return estimate;
  const EmbeddingBackwardTraffic traffic = EmbeddingBackwardBytes(shape, optimizer);
  const double tables = TableCount(shape);
  const double unique = std::clamp(shape.unique_rows, std::min(shape.lookups, 1.0), shape.lookups);
  const double bags = std::clamp(shape.bags, std::min(shape.lookups, 1.0), shape.lookups);
  const std::vector<ReuseClass> rows = ReuseClasses(shape);
  const Bytes gradient_row = traffic.gradient_gather / shape.lookups;
  Demand demand;
  AddGather({{bags / tables, shape.lookups / bags}}, tables, gradient_row, Rounds(rows, tables), accelerator, demand);
  if (optimizer == EmbeddingOptimizer::kNone) {
    AddStream(Bytes(0), traffic.rows, demand);  // the summed gradients, packed
  } else {
    const Bytes row = static_cast<double>(shape.dim) * SizeOf(shape.row);
    AddUpdate(unique, row, accelerator, demand);
    AddUpdate(unique, EmbeddingStateBytesPerRow(optimizer, shape.dim, shape.state), accelerator, demand);
    demand.lanes += unique * LaneBytes(row, accelerator);  // one more round; the state is loaded beside the row
  }
  Seconds hottest;
  if (accelerator.clock_boost > Hertz(0)) {
    const double run = std::min(HottestCount(rows), kLongestSerialRun);
    hottest = run * gradient_row / (kSerialBytesPerClock * accelerator.clock_boost);
  }
  estimate.launch = kUpdateKernels * accelerator.kernel_fixed + kGatherRamp;
  estimate.memory = std::max(kUpdateGap * DemandSeconds(demand, accelerator), hottest);
  estimate.compute = ComputeSeconds(EmbeddingBackwardWork(shape, optimizer), accelerator);
  estimate.total = estimate.launch + std::max(estimate.memory, estimate.compute);
  return estimate;
}

Estimate EmbeddingBackwardEstimate(const EmbeddingShape& shape, EmbeddingOptimizer optimizer,
                                   const Accelerator& accelerator) {
  const Estimate sort = EmbeddingSortEstimate(shape, accelerator);
  Estimate estimate = EmbeddingUpdateEstimate(shape, optimizer, accelerator);
  estimate.launch += sort.launch;
  estimate.memory += sort.memory;
  estimate.total += sort.total;
  return estimate;
}

}  // namespace portolan
