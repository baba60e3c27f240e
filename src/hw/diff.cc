#include "hw/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace portolan {
namespace {

// Rank of a changed topology or wave size, as if it were a ratio of this size: above a quarter more of anything, below
// twice the memory.
constexpr double kCategoryRatio = 1.5;
// A number that only one side has (no fp8 path, no memory-side cache) ranks as this ratio.
constexpr double kOneSidedRatio = 2.0;

// How much a difference counts in the ranking, against capacity, bandwidth and 16-bit matrix rate: what only some
// layers feel, or what software can work around, stands below an equal ratio of those. Judgement, not measurement.
constexpr double kEveryStep = 1.0;
constexpr double kSomeSteps = 0.5;
constexpr double kDetail = 0.25;

enum class Unit { kBytes, kCacheBytes, kByteRate, kFlopRate, kSeconds, kWatt, kFlopsPerByte, kPerSecond };

std::string Scaled(double value, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

std::string Show(double value, Unit unit) {
  if (value <= 0) return "none";
  switch (unit) {
    case Unit::kBytes:
      return Scaled(value, "B");
    case Unit::kCacheBytes:  // data sheets give on-chip memory in powers of two
      return value < 1048576 ? fmt::format("{:.4g} KiB", value / 1024) : fmt::format("{:.4g} MiB", value / 1048576);
    case Unit::kByteRate:
      return Scaled(value, "B/s");
    case Unit::kFlopRate:
      return Scaled(value, "FLOP/s");
    case Unit::kSeconds:
      return fmt::format("{:.2g} us", value * 1e6);
    case Unit::kWatt:
      return fmt::format("{:.0f} W", value);
    case Unit::kFlopsPerByte:
      return fmt::format("{:.3g} FLOP/B", value);
    case Unit::kPerSecond:
      return Scaled(value, "/s");
  }
  return "?";
}

// What more or less of a quantity means for a training job that moves, and what it means that one side has none.
struct Meaning {
  std::string more;
  std::string less;
  std::string only_target = "the source has none";
  std::string only_source = "the target has none";
};

// One numeric property of both sides.
struct Quantity {
  std::string name;
  Unit unit = Unit::kBytes;
  double importance = kEveryStep;
  double a = 0, b = 0;
  std::string key;  // of the value in an accelerator file; empty: computed, or a fabric's
};

class Differences {
 public:
  Differences(const Accelerator& a, const Accelerator& b) : a_(a), b_(b) {}

  void Number(const Quantity& q, const Meaning& meaning) {
    if (q.a <= 0 && q.b <= 0) return;
    HardwareDifference row;
    row.quantity = q.name;
    row.value_a = Show(q.a, q.unit);
    row.value_b = Show(q.b, q.unit);
    row.inherited_a = q.a > 0 && a_.inherited.count(q.key) > 0;
    row.inherited_b = q.b > 0 && b_.inherited.count(q.key) > 0;
    row.weight = q.importance * std::log(kOneSidedRatio);
    if (q.a > 0 && q.b > 0) {
      row.ratio = q.b / q.a;
      if (std::abs(row.ratio - 1) <= kSameRatio) return;
      row.weight = q.importance * std::abs(std::log(row.ratio));
      row.allows = row.ratio > 1 ? meaning.more : meaning.less;
    } else {
      row.allows = q.b > 0 ? meaning.only_target : meaning.only_source;
    }
    rows_.push_back(std::move(row));
  }

  void Category(const std::string& quantity, const std::string& a, const std::string& b, const std::string& allows) {
    if (a == b) return;
    HardwareDifference row;
    row.quantity = quantity;
    row.value_a = a;
    row.value_b = b;
    row.weight = std::log(kCategoryRatio);
    row.allows = allows;
    rows_.push_back(std::move(row));
  }

  std::vector<HardwareDifference> Ranked() && {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const HardwareDifference& x, const HardwareDifference& y) { return x.weight > y.weight; });
    return std::move(rows_);
  }

 private:
  const Accelerator& a_;
  const Accelerator& b_;
  std::vector<HardwareDifference> rows_;
};

double Balance(const Accelerator& a) {
  return a.hbm_sustained.value > 0 ? a.sustained_matrix[DType::kBf16].value / a.hbm_sustained.value : 0;
}

std::string TopologyChange(Topology from, Topology to) {
  if (to == Topology::kPcie) {
    return "pairs share the host bridges: keep exchanges small, prefer data-parallel or deduplicated tables";
  }
  if (to == Topology::kFullMesh) {
    return "a group of g devices uses only g-1 of the links of each: spread every exchange over the whole node and "
           "avoid groups of 2 or 4";
  }
  return from == Topology::kFullMesh
             ? "every pair runs at the full rate of a device: groups of 2 or 4 lose nothing any more"
             : "every pair runs at the full rate of a device: sharded tables become cheap to exchange";
}

std::string WaveChange(int from, int to) {
  const std::string fix =
      "warp-synchronous code (ballots, shuffles, masks of 32 bits, lane arithmetic) needs the "
      "porting rules; ";
  return fix + (to > from ? "a divergent branch costs more lanes, reductions in one wave get wider"
                          : "one wave holds fewer lanes, so row-per-wave kernels need two waves or fewer columns");
}

constexpr std::array kMatrixTypes = {DType::kBf16, DType::kTf32, DType::kFp32, DType::kFp8E4m3, DType::kMxFp4};

std::string PeakRatio(double a, double b) { return a > 0 && b > 0 ? fmt::format(" (by peak {:.2f}x)", b / a) : ""; }

// The formats that layers in a format without a matrix path would run in.
std::string Instead(DType dtype, const Accelerator& device) {
  const DType wide = dtype == DType::kTf32 ? DType::kFp32 : DType::kTf32;
  std::string text = fmt::format("bf16 at {}", Show(device.sustained_matrix[DType::kBf16].value, Unit::kFlopRate));
  if (dtype != DType::kTf32 && dtype != DType::kFp32) return text;
  if (device.sustained_matrix[wide].value > 0) {
    text += fmt::format(" or {} at {}", DTypeName(wide), Show(device.sustained_matrix[wide].value, Unit::kFlopRate));
  }
  return text;
}

void MatrixRates(const Accelerator& a, const Accelerator& b, Differences* d) {
  for (const DType dtype : kMatrixTypes) {
    const std::string name = DTypeName(dtype);
    const std::string peak = PeakRatio(a.peak_matrix[dtype].value, b.peak_matrix[dtype].value);
    d->Number({fmt::format("sustained {} matrix rate", name), Unit::kFlopRate,
               dtype == DType::kBf16 ? kEveryStep : kSomeSteps, a.sustained_matrix[dtype].value,
               b.sustained_matrix[dtype].value, "sustained_matrix_flops_per_s." + name},
              {"large dense layers in this format gain this much, small ones less" + peak,
               "large dense layers in this format lose this much, small ones less" + peak,
               fmt::format("a matrix path for {}; the source runs such layers in {}", name, Instead(dtype, a)),
               fmt::format("no matrix path for {}: such layers run in {}", name, Instead(dtype, b))});
  }
}

void Caches(const Accelerator& a, const Accelerator& b, Differences* d) {
  std::string dies;
  if (a.dies > 1 || b.dies > 1) {
    const auto slices = [](const Accelerator& x) {
      return fmt::format("{} of {}", x.dies, Show(x.l2.value / x.dies, Unit::kCacheBytes));
    };
    dies = fmt::format("; by die {} against {}, and a row that several dies read stands in each of their caches",
                       slices(b), slices(a));
  }
  const std::string stand_in = b.mall > a.mall ? fmt::format(", unless the memory-side cache of {} catches them",
                                                             Show(b.mall.value, Unit::kCacheBytes))
                                               : "";
  d->Number({"L2 capacity, all dies", Unit::kCacheBytes, kDetail, a.l2.value, b.l2.value, "l2_bytes_per_die"},
            {"more hot embedding rows and activations are read from the L2" + dies,
             "fewer hot embedding rows and activations stay in the L2" + stand_in + dies});
  d->Number({"memory-side cache", Unit::kCacheBytes, kDetail, a.mall.value, b.mall.value, "mall_bytes"},
            {"more hot rows and short-lived activations stay out of HBM", "more of what misses the L2 goes to HBM",
             "hot rows and short-lived activations can stay out of HBM", "what misses the L2 goes to HBM"});
}

}  // namespace

std::vector<HardwareDifference> DiffAccelerators(const Accelerator& a, const Fabric& scale_up_a, const Accelerator& b,
                                                 const Fabric& scale_up_b) {
  Differences d(a, b);
  d.Number({"HBM capacity", Unit::kBytes, kEveryStep, a.hbm.value, b.hbm.value, "hbm_bytes"},
           {"fewer shards, bigger local batch, less recomputation; more tables fit as data-parallel copies",
            "more shards, a smaller local batch, recomputation or narrower rows"});
  const std::string hbm_peak = PeakRatio(a.hbm_peak.value, b.hbm_peak.value);
  d.Number(
      {"sustained HBM bandwidth", Unit::kByteRate, kEveryStep, a.hbm_sustained.value, b.hbm_sustained.value,
       "hbm_sustained_bytes_per_s"},
      {"elementwise layers and optimizers speed up by as much, wide embedding rows nearly so; fusion pays less" +
           hbm_peak,
       "embedding and elementwise work takes a larger share: fuse, use half-precision rows, deduplicate" + hbm_peak});
  MatrixRates(a, b, &d);
  d.Number({"machine balance, bf16 over HBM", Unit::kFlopsPerByte, kSomeSteps, Balance(a), Balance(b), ""},
           {"more layers are bound by memory: fuse and widen layers, prefer compute over traffic",
            "more layers are bound by the matrix units: extra traffic (recomputation avoided, wider rows) is cheaper"});
  d.Number({"scale-up rate of a device, each way", Unit::kByteRate, kEveryStep, scale_up_a.device_peak.value,
            scale_up_b.device_peak.value, ""},
           {"all-to-all and all-reduce in a node get cheaper; model-parallel tables pay off earlier",
            "exchanges take longer: half-precision all-to-all, deduplication, fewer sharded tables, more overlap"});
  d.Category("scale-up topology", TopologyName(scale_up_a.topology), TopologyName(scale_up_b.topology),
             fmt::format("{} (one pair {} instead of {})", TopologyChange(scale_up_a.topology, scale_up_b.topology),
                         Show(scale_up_b.link_peak.value, Unit::kByteRate),
                         Show(scale_up_a.link_peak.value, Unit::kByteRate)));
  d.Number({"shared memory (LDS) of a compute unit", Unit::kCacheBytes, kSomeSteps, a.shared_memory_per_unit.value,
            b.shared_memory_per_unit.value, "shared_memory_bytes_per_unit"},
           {"larger tiles and deeper pipelines fit", "tiles and pipeline stages must shrink"});
  d.Category("wave size", std::to_string(a.wave_size), std::to_string(b.wave_size),
             WaveChange(a.wave_size, b.wave_size));
  Caches(a, b, &d);
  d.Number(
      {"special-function results (exp, tanh)", Unit::kPerSecond, kDetail, a.transcendental_per_s,
       b.transcendental_per_s, "transcendental_per_clock_per_unit"},
      {"softmax, SiLU and sigmoid bind attention layers less", "softmax, SiLU and sigmoid can bind attention layers"});
  d.Number({"fixed cost of a kernel", Unit::kSeconds, kSomeSteps, a.kernel_fixed.value, b.kernel_fixed.value,
            "kernel_fixed_s"},
           {"many small kernels cost more: fuse, batch the small layers, raise the local batch",
            "small kernels cost less; fusion is less urgent"});
  d.Number(
      {"rate to host memory", Unit::kByteRate, kDetail, a.host_link.value, b.host_link.value, "host_link_bytes_per_s"},
      {"input copies get faster", "input copies get slower: copy beside the step, send narrower indices"});
  d.Number({"board power", Unit::kWatt, kDetail, a.power_w, b.power_w, "power_w"},
           {"the gain in speed costs energy and cooling", "the same work costs less energy where the time is equal"});
  return std::move(d).Ranked();
}

}  // namespace portolan
