#include "select/tile_lanes.h"

#include <algorithm>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "select/tile_formula.h"

namespace portolan {
namespace {

constexpr size_t kLanes = 8;

enum Field : size_t {
  kTileM,
  kTileN,
  kSplit,
  kInvTileM,
  kInvTileN,
  kInvSplit,
  kInvStepK,
  kClusterM,
  kClusterN,
  kInvClusterM,
  kInvClusterN,
  kUnits,
  kOccupancy,
  kAspect,
  kRowsAtOnce,
  kLds,
  kL2,
  kIssueSeconds,
  kStepSeconds,
  kWait,
  kPrologueSeconds,
  kEpilogueTile,
  kEpilogueFixedSeconds,
  kLaunchSeconds,
  kPerHbmByte,
  kPerL2Byte,
  kRefetchShare,
  kStepL2Bytes,
  kBytesK,
  kReduction,
  kPerPartial,
  kOutputFactor,
  kAtomicSplit,
  kStreamK,
  kTileClass,
  kMatrix,
  kFactor = kMatrix + kLayouts,
  kSlopes = kFactor + kLayouts,
  kFields = kSlopes + kLayouts * kSlopeCount
};

void Store(const TileKernel& k, double* lane) {
  const auto set = [&](size_t field, double value) { lane[field * kLanes] = value; };
  set(kTileM, k.tile_m), set(kTileN, k.tile_n), set(kSplit, k.split);
  set(kInvTileM, k.inv_tile_m), set(kInvTileN, k.inv_tile_n);
  set(kInvSplit, k.inv_split), set(kInvStepK, k.inv_step_k);
  set(kClusterM, k.cluster_m), set(kClusterN, k.cluster_n);
  set(kInvClusterM, 1.0 / k.cluster_m), set(kInvClusterN, 1.0 / k.cluster_n);
  set(kUnits, k.units), set(kOccupancy, k.occupancy), set(kAspect, k.aspect), set(kRowsAtOnce, k.rows_at_once);
  set(kLds, k.lds), set(kL2, k.l2), set(kIssueSeconds, k.issue), set(kStepSeconds, k.step), set(kWait, k.wait);
  set(kPrologueSeconds, k.prologue), set(kEpilogueTile, k.epilogue_tile), set(kEpilogueFixedSeconds, k.epilogue_fixed);
  set(kLaunchSeconds, k.launch);
  set(kPerHbmByte, k.seconds_per_hbm_byte), set(kPerL2Byte, k.seconds_per_l2_byte), set(kRefetchShare, k.refetch);
  set(kStepL2Bytes, k.step_l2_bytes), set(kBytesK, k.bytes_k);
  set(kReduction, k.reduction), set(kPerPartial, k.seconds_per_partial), set(kOutputFactor, k.output_factor);
  set(kAtomicSplit, k.atomic ? 1.0 : 0.0), set(kStreamK, k.stream_k ? 1.0 : 0.0);
  set(kTileClass, k.tile_class);
  for (size_t l = 0; l < kLayouts; ++l) {
    set(kMatrix + l, k.matrix[l]);
    set(kFactor + l, k.factor[l]);
    for (size_t i = 0; i < kSlopeCount; ++i) {
      set(kSlopes + l * kSlopeCount + i, static_cast<double>(k.slopes[l][i]));
    }
  }
}

// The formula over `count` blocks. `p` is copied so that nothing written to `seconds` can change it.
PORTOLAN_CPU_CLONES void ScoreBlocks(const TileProblem& problem, const double* blocks, size_t count,
                                     double* __restrict seconds) {
  const TileProblem p = problem;
  const size_t layout = static_cast<size_t>(p.layout);
  const size_t matrix = (kMatrix + layout) * kLanes, factor = (kFactor + layout) * kLanes;
  const size_t slopes = (kSlopes + layout * kSlopeCount) * kLanes;
  const double issue0 = p.issue_factor[0], issue1 = p.issue_factor[1], issue2 = p.issue_factor[2],
               issue3 = p.issue_factor[3];
  const double epilogue0 = p.epilogue_factor[0], epilogue1 = p.epilogue_factor[1], epilogue2 = p.epilogue_factor[2],
               epilogue3 = p.epilogue_factor[3];
  static_assert(kMaxTileClasses == 4);
  for (size_t b = 0; b < count; ++b) {
    const double* block = blocks + b * kFields * kLanes;
    double* out = seconds + b * kLanes;
    for (size_t i = 0; i < kLanes; ++i) {
      const double* k = block + i;
      TileRow row;
      row.tile_m = k[kTileM * kLanes], row.tile_n = k[kTileN * kLanes], row.split = k[kSplit * kLanes];
      row.inv_tile_m = k[kInvTileM * kLanes], row.inv_tile_n = k[kInvTileN * kLanes];
      row.inv_split = k[kInvSplit * kLanes], row.inv_step_k = k[kInvStepK * kLanes];
      row.cluster_m = k[kClusterM * kLanes], row.cluster_n = k[kClusterN * kLanes];
      row.inv_cluster_m = k[kInvClusterM * kLanes], row.inv_cluster_n = k[kInvClusterN * kLanes];
      row.units = k[kUnits * kLanes], row.occupancy = k[kOccupancy * kLanes], row.aspect = k[kAspect * kLanes];
      row.rows_at_once = k[kRowsAtOnce * kLanes];
      row.matrix = k[matrix];
      row.lds = k[kLds * kLanes], row.l2 = k[kL2 * kLanes], row.issue = k[kIssueSeconds * kLanes];
      row.step = k[kStepSeconds * kLanes], row.wait = k[kWait * kLanes];
      row.prologue = k[kPrologueSeconds * kLanes], row.epilogue_tile = k[kEpilogueTile * kLanes];
      row.epilogue_fixed = k[kEpilogueFixedSeconds * kLanes], row.launch = k[kLaunchSeconds * kLanes];
      row.seconds_per_hbm_byte = k[kPerHbmByte * kLanes], row.seconds_per_l2_byte = k[kPerL2Byte * kLanes];
      row.refetch = k[kRefetchShare * kLanes], row.step_l2_bytes = k[kStepL2Bytes * kLanes];
      row.bytes_k = k[kBytesK * kLanes], row.reduction = k[kReduction * kLanes];
      row.seconds_per_partial = k[kPerPartial * kLanes], row.output_factor = k[kOutputFactor * kLanes];
      row.atomic = k[kAtomicSplit * kLanes], row.stream_k = k[kStreamK * kLanes];
      row.factor = k[factor];
      for (size_t s = 0; s < kSlopeCount; ++s) row.slopes[s] = k[slopes + s * kLanes];
      const double path = k[kTileClass * kLanes];
      row.issue_factor = Select(path == 0.0, issue0, Select(path == 1.0, issue1, Select(path == 2.0, issue2, issue3)));
      row.epilogue_factor =
          Select(path == 0.0, epilogue0, Select(path == 1.0, epilogue1, Select(path == 2.0, epilogue2, epilogue3)));
      out[i] = EvaluateRow(p, row, 0.0).total;
    }
  }
}

constexpr size_t kBlocksAtOnce = 16;

}  // namespace

TileLanes::TileLanes(std::vector<TileKernel> kernels) : kernels_(std::move(kernels)) {
  const size_t blocks = (kernels_.size() + kLanes - 1) / kLanes;
  blocks_.resize(blocks * kFields * kLanes);
  for (size_t i = 0; i < blocks * kLanes; ++i) {
    // The last kernel fills the last block.
    Store(kernels_[std::min(i, kernels_.size() - 1)], blocks_.data() + i / kLanes * kFields * kLanes + i % kLanes);
  }
}

void TileLanes::ScoreAll(const TileProblem& problem, std::span<double> seconds) const {
  PORTOLAN_CHECK(seconds.size() == kernels_.size(), "one time a kernel");
  if (problem.uneven_groups > 0.0) {
    for (size_t i = 0; i < kernels_.size(); ++i) seconds[i] = EvaluateTileTotal(problem, kernels_[i]);
    return;
  }
  std::array<double, kBlocksAtOnce * kLanes> some;
  for (size_t first = 0; first < kernels_.size(); first += some.size()) {
    const size_t n = std::min(some.size(), kernels_.size() - first);
    ScoreBlocks(problem, blocks_.data() + first * kFields, (n + kLanes - 1) / kLanes, some.data());
    std::copy_n(some.begin(), n, seconds.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace portolan
