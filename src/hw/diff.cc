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

enum class Unit { kBytes, kByteRate, kFlopRate, kSeconds, kWatt, kFlopsPerByte, kPerSecond };

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

// What more, and what less, of a quantity means for a training job that moves.
struct Meaning {
  std::string more;
  std::string less;
};

class Differences {
 public:
  void Number(const std::string& quantity, Unit unit, double a, double b, const Meaning& meaning) {
    if (a <= 0 && b <= 0) return;
    HardwareDifference row{quantity, Show(a, unit), Show(b, unit), 0, std::log(kOneSidedRatio), ""};
    if (a > 0 && b > 0) {
      row.ratio = b / a;
      if (std::abs(row.ratio - 1) <= kSameRatio) return;
      row.weight = std::abs(std::log(row.ratio));
      row.allows = fmt::format("{:.3g}x {}: {}", row.ratio, quantity, row.ratio > 1 ? meaning.more : meaning.less);
    } else {
      row.allows = b > 0 ? fmt::format("only the target has it: {}", meaning.more)
                         : fmt::format("the target has none: {}", meaning.less);
    }
    rows_.push_back(std::move(row));
  }

  void Category(const std::string& quantity, const std::string& a, const std::string& b, const std::string& allows) {
    if (a == b) return;
    rows_.push_back({quantity, a, b, 0, std::log(kCategoryRatio), allows});
  }

  std::vector<HardwareDifference> Ranked() && {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const HardwareDifference& x, const HardwareDifference& y) { return x.weight > y.weight; });
    return std::move(rows_);
  }

 private:
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

}  // namespace

std::vector<HardwareDifference> DiffAccelerators(const Accelerator& a, const Fabric& scale_up_a, const Accelerator& b,
                                                 const Fabric& scale_up_b) {
  Differences d;
  d.Number("HBM capacity", Unit::kBytes, a.hbm.value, b.hbm.value,
           {"fewer shards, bigger local batch, less recomputation; more tables fit as data-parallel copies",
            "more shards, a smaller local batch, recomputation or tables in host memory"});
  d.Number("sustained HBM bandwidth", Unit::kByteRate, a.hbm_sustained.value, b.hbm_sustained.value,
           {"embedding lookups, optimizers and elementwise layers speed up by as much; fusion pays less",
            "embedding and elementwise work dominates sooner: fuse, use half-precision tables, deduplicate"});
  for (const DType dtype : kMatrixTypes) {
    const double peak_a = a.peak_matrix[dtype].value;
    const double peak_b = b.peak_matrix[dtype].value;
    const std::string peak = peak_a > 0 && peak_b > 0 ? fmt::format(" (peak {:.3g}x)", peak_b / peak_a) : "";
    const std::string more = "large dense layers in this format gain this much, small ones less" + peak;
    const std::string less = peak_b > 0 ? "large dense layers in this format lose this much" + peak
                                        : "use another format for dense layers, or move work to embeddings";
    d.Number(fmt::format("sustained {} matrix rate", DTypeName(dtype)), Unit::kFlopRate,
             a.sustained_matrix[dtype].value, b.sustained_matrix[dtype].value, {more, less});
  }
  d.Number("machine balance, bf16 over HBM", Unit::kFlopsPerByte, Balance(a), Balance(b),
           {"more layers are bound by memory: fuse and widen layers, prefer compute over traffic",
            "more layers are bound by the matrix units: extra traffic (recomputation avoided, wider tables) is cheap"});
  d.Number("scale-up rate of a device", Unit::kByteRate, scale_up_a.device_peak.value, scale_up_b.device_peak.value,
           {"all-to-all and all-reduce in a node get cheaper; model-parallel tables pay off earlier",
            "exchanges take longer: half-precision all-to-all, deduplication, fewer sharded tables, more overlap"});
  d.Category("scale-up topology", TopologyName(scale_up_a.topology), TopologyName(scale_up_b.topology),
             fmt::format("{} (one pair {} instead of {})", TopologyChange(scale_up_a.topology, scale_up_b.topology),
                         Show(scale_up_b.link_peak.value, Unit::kByteRate),
                         Show(scale_up_a.link_peak.value, Unit::kByteRate)));
  d.Number("shared memory (LDS) of a compute unit", Unit::kBytes, a.shared_memory_per_unit.value,
           b.shared_memory_per_unit.value,
           {"larger tiles and deeper pipelines fit", "tiles and pipeline stages must shrink"});
  d.Category("wave size", std::to_string(a.wave_size), std::to_string(b.wave_size),
             WaveChange(a.wave_size, b.wave_size));
  d.Number("L2 capacity", Unit::kBytes, a.l2.value, b.l2.value,
           {"more hot embedding rows and activations are read from cache",
            "fewer hot rows stay in cache: deduplicate lookups, keep tiles local"});
  d.Number("memory-side cache", Unit::kBytes, a.mall.value, b.mall.value,
           {"hot rows and short-lived activations can stay out of HBM", "reuse beyond the L2 goes to HBM"});
  d.Number("special-function rate", Unit::kPerSecond, a.transcendental_per_s, b.transcendental_per_s,
           {"softmax, SiLU and sigmoid layers speed up", "softmax, SiLU and sigmoid can bind attention layers"});
  d.Number("fixed cost of a kernel", Unit::kSeconds, a.kernel_fixed.value, b.kernel_fixed.value,
           {"many small kernels cost more: fuse, batch the small layers, raise the local batch",
            "small kernels cost less; fusion is less urgent"});
  d.Number(
      "rate to host memory", Unit::kByteRate, a.host_link.value, b.host_link.value,
      {"input copies and tables in host memory get faster", "tables in host memory get slower: cache more in HBM"});
  d.Number("power", Unit::kWatt, a.power_w, b.power_w,
           {"the gain in speed costs energy and cooling", "the same work costs less energy where the time is equal"});
  return std::move(d).Ranked();
}

}  // namespace portolan
