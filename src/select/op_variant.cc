#include "select/op_variant.h"

#include <algorithm>

#include "cost/attention.h"

namespace portolan {
namespace {

// FBGEMM commit 8ac2022ea (pull request 5835), MI350X, kernel times after unrolling; fitted by hand 2026-11-30.
constexpr double kReferenceUnitsHertz = 256 * 2.2e9;
constexpr double kWarpLookupSeconds = 9.1e-9;
constexpr double kWarpColumnSeconds = 22.5e-12;
constexpr double kWarpFixedSeconds = 24e-6;
constexpr double kCtaLookupSeconds = 1.85e-9;
constexpr double kCtaColumnSeconds = 21.3e-12;
constexpr double kCtaFixedSeconds = 5e-6;
constexpr double kCtaRunLookups = 4096;  // longer runs are shared by several work-groups
constexpr double kCtaRunLookupSeconds = 27e-9;
constexpr double kCtaRunColumnSeconds = 18e-12;

Estimate Kernel(double fixed, double throughput, double run) {
  Estimate estimate;
  estimate.launch = Seconds(fixed);
  estimate.memory = Seconds(std::max(throughput, run));
  estimate.total = estimate.launch + estimate.memory;
  return estimate;
}

void FastestFirst(std::vector<RankedVariant>* variants) {
  std::stable_sort(variants->begin(), variants->end(),
                   [](const RankedVariant& a, const RankedVariant& b) { return a.estimate.total < b.estimate.total; });
}

}  // namespace

std::vector<RankedVariant> RankEmbeddingBackward(const EmbeddingShape& shape, const Accelerator& accelerator) {
  const double speed = std::max(1, accelerator.compute_units) * accelerator.clock_boost.value / kReferenceUnitsHertz;
  const auto columns = static_cast<double>(shape.dim);
  const double tables = std::max<double>(1.0, static_cast<double>(shape.tables));
  const double warp = shape.lookups * (kWarpLookupSeconds + kWarpColumnSeconds * columns) / speed;
  const double cta = shape.lookups * std::max(kCtaLookupSeconds, kCtaColumnSeconds * columns) / speed;
  const double run =
      std::min(shape.lookups / tables, kCtaRunLookups) * (kCtaRunLookupSeconds + kCtaRunColumnSeconds * columns);
  std::vector<RankedVariant> variants = {{"cta", Kernel(kCtaFixedSeconds, cta, run)},
                                         {"warp", Kernel(kWarpFixedSeconds, warp, 0.0)}};
  FastestFirst(&variants);
  return variants;
}

std::vector<RankedVariant> RankAttention(const AttentionShape& shape, AttentionPass pass,
                                         const Accelerator& accelerator) {
  std::vector<RankedVariant> variants;
  constexpr std::pair<const char*, AttentionImplementation> kAll[] = {
      {"vendor", AttentionImplementation::kVendorTuned},
      {"triton", AttentionImplementation::kTriton},
      {"framework", AttentionImplementation::kFramework}};
  for (const auto& [name, implementation] : kAll) {
    variants.push_back({name, pass == AttentionPass::kForward
                                  ? AttentionForwardEstimate(shape, accelerator, implementation)
                                  : AttentionBackwardEstimate(shape, accelerator, implementation)});
  }
  FastestFirst(&variants);
  return variants;
}

}  // namespace portolan
