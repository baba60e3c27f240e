#include "select/family_triton.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "select/tile_lanes.h"
#include "select/tile_model.h"

namespace portolan {
namespace {

constexpr double kReservedSharedBytes = 1024.0;    // of every work-group, CUDA programming guide
constexpr double kMostSharedBytes = 227.0 * 1024;  // of one work-group on sm_90, CUDA programming guide
constexpr double kBookkeepingRegisters = 40.0;     // addresses and loop state a thread, assumed
constexpr double kMostRegisters = 255.0;
constexpr double kWarp = 32.0;
constexpr double kInstructionRows = 64.0;  // rows of one warp-group matrix instruction (PTX ISA, wgmma)
constexpr double kInstructionColumns = 256.0;
constexpr int kDefaultRowsTogether = 8;

class TritonModel : public FamilyModel {
 public:
  TritonModel(const Accelerator& accelerator, const FamilyConstants& constants)
      : device_(DescribeTileDevice(accelerator, constants.compute)), constants_(constants) {
    std::copy_n(constants.values.begin(), kTileConstantCount, classes_[0].begin());
  }

  bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return problem.compute == constants_.compute && Ready(kernel).supported;
  }

  KernelTerms Score(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return EvaluateTile(DescribeTileProblem(problem, device_, classes_), Ready(kernel));
  }

  KernelRegime Regime(const GemmProblem& problem, const GemmKernel& kernel) const override {
    KernelRegime regime;
    EvaluateTile(DescribeTileProblem(problem, device_, classes_), Ready(kernel), &regime);
    return regime;
  }

  std::vector<std::string> FactorKeys(const GemmProblem&, const GemmKernel& kernel) const override {
    std::vector<std::string> keys;
    const std::span<const char* const> slopes(kSlopeSuffixes);
    ForEachKey(kernel, [&](const std::string& key, bool sloped) {
      AppendFactorKeys(key, sloped ? slopes : slopes.first(0), &keys);
    });
    return keys;
  }

  std::unique_ptr<KernelScorer> Prepare(std::span<const GemmKernel> kernels) const override;

 private:
  friend class TritonScorer;

  template <typename Use>
  static void ForEachKey(const GemmKernel& k, const Use& use) {
    const std::string tile = fmt::format("{}x{}", k.tile_m, k.tile_n);
    use("tile=" + tile, true);
    use(fmt::format("pipe={}/{}", k.tile_k, k.stages), true);
    use(fmt::format("warps={}/{}", tile, k.waves), false);
    use(fmt::format("cfg={}x{}/{}/{}", tile, k.tile_k, k.waves, k.stages), false);
  }

  TileKernel Ready(const GemmKernel& k) const {
    const TileConstants& c = classes_[0];
    const double bytes = SizeOf(constants_.compute).value;
    const double bm = std::max<int>(1, k.tile_m), bn = std::max<int>(1, k.tile_n), bk = std::max<int>(1, k.tile_k);
    const double threads = std::max<int>(1, k.waves) * kWarp;
    const double step_bytes = (bm + bn) * bk * bytes;
    TileKernel r = MakeTileKernel(bm, bn, bk, k.split_k);
    r.units = device_.units;
    r.bytes_k = bytes;
    r.rows_at_once = k.swizzle > 0 ? k.swizzle : kDefaultRowsTogether;

    // Accumulators, bookkeeping and half of the loads in flight of one stage live in registers.
    const double registers = std::min(
        kMostRegisters, bm * bn / threads + kBookkeepingRegisters + 2.0 * (bm + bn) * bk / 8.0 / threads * 2.0);
    const double shared = step_bytes * std::max<int>(1, k.stages) + kReservedSharedBytes;
    r.supported = k.tile_m > 0 && k.tile_n > 0 && k.tile_k > 0 && k.waves > 0 && k.stages > 0 &&
                  shared <= std::min(kMostSharedBytes, device_.shared_memory) + kReservedSharedBytes &&
                  bm * bn / threads <= kMostRegisters;
    r.occupancy = std::clamp(
        std::floor(std::min(device_.shared_memory / shared, device_.registers / 4.0 / (registers * threads))), 1.0,
        16.0);

    const double narrow = bm < kInstructionRows ? c[kNarrow] : 1.0;
    const double matrix = 2.0 * bm * bn * bk / (device_.matrix_rate * c[kMatrixShare]) * narrow *
                          std::exp((k.waves >= 8 ? c[kEightWarps] : 0.0) + c[kStepDepth] * (bk / 64.0 - 1.0));
    r.matrix = {matrix, matrix * std::exp(c[kLayoutNN]), matrix * std::exp(c[kLayoutNT])};
    // Each warp group reads its rows once per 256 columns, and all columns once per 64 rows.
    const double row_blocks = std::max(1.0, bm / kInstructionRows);
    const double groups = std::max(1.0, k.waves / 4.0);
    const double groups_along_n = groups / std::min(groups, row_blocks);
    const double read = bytes * bk * (bm * std::max(groups_along_n, bn / kInstructionColumns) + row_blocks * bn);
    r.lds = (read + c[kLdsWrite] * step_bytes) / (device_.lds_rate * c[kLdsShare]);
    r.l2 = step_bytes / (device_.l2_rate / device_.units * c[kL2UnitShare]);
    r.issue = c[kIssue] * step_bytes / 16.0 / kWarp;
    r.step = c[kStep];
    r.wait = c[kLatency] / std::max(1.0, k.stages - 1.0);
    r.prologue = c[kPrologue];
    const bool atomic = r.split > 1.0;
    r.epilogue_tile = c[kEpilogue] * bm * bn * (atomic ? c[kAtomic] : 1.0);
    r.epilogue_fixed = c[kEpilogueFixed];
    r.launch = c[kLaunch];
    r.seconds_per_hbm_byte = 1.0 / (device_.hbm_rate * c[kHbmShare]);
    r.seconds_per_l2_byte = 1.0 / (device_.l2_rate * c[kL2Share]);
    r.refetch = c[kRefetch];
    r.step_l2_bytes = step_bytes;
    r.output_factor = atomic ? 2.0 * r.split : 1.0;  // fp32 instead of two bytes, once a part
    r.atomic = atomic;
    if (constants_.factors.empty()) return r;
    ForEachKey(k, [&](const std::string& key, bool) { AddFactors(constants_, key, &r, -1); });
    return r;
  }

  TileDevice device_;
  FamilyConstants constants_;
  std::array<TileConstants, 1> classes_;
};

class TritonScorer : public KernelScorer {
 public:
  TritonScorer(const TritonModel& model, std::span<const GemmKernel> kernels) : model_(model) {
    std::vector<TileKernel> ready;
    for (const GemmKernel& kernel : kernels) ready.push_back(model.Ready(kernel));
    lanes_ = TileLanes(std::move(ready));
  }
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    lanes_.ScoreAll(DescribeTileProblem(problem, model_.device_, model_.classes_), seconds);
    const bool right_type = problem.compute == model_.constants_.compute;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (!right_type || !lanes_.kernel(i).supported) seconds[i] = std::numeric_limits<double>::infinity();
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override {
    return EvaluateTile(DescribeTileProblem(problem, model_.device_, model_.classes_), lanes_.kernel(i));
  }

 private:
  const TritonModel& model_;
  TileLanes lanes_;
};

std::unique_ptr<KernelScorer> TritonModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<TritonScorer>(*this, kernels);
}

std::unique_ptr<FamilyModel> MakeTriton(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<TritonModel>(accelerator, constants);
}

void ReadTriton(CsvRow& row, GemmKernel* kernel) {
  const auto number = [&](const char* column, int64_t least, int64_t most, int64_t fallback) {
    return static_cast<int16_t>(row.Integer(column, {least, most}, fallback));
  };
  kernel->tile_m = number("BM", 0, 1024, 0);  // 0 = another library's time beside the sweep
  kernel->tile_n = number("BN", 0, 1024, 0);
  kernel->tile_k = number("BK", 0, 1024, 0);
  kernel->waves = number("warps", 0, 32, 4);
  kernel->stages = number("stages", 0, 16, 1);
  kernel->split_k = number("splitk", 0, 4096, 1);
  kernel->swizzle = number("group_m", 0, 1024, 0);
  kernel->reduction = kernel->split_k > 1 ? SplitReduction::kAtomic : SplitReduction::kNone;
}

// Rows that are not aligned to 16 bytes lose the asynchronous copies. Assumed, as the sweep has none: with 1.2 a bit
// and operand, 1024 x 479 costs about five times 1024 x 480, as it does with cuBLASLt's kernels for such rows (one
// H200, November 2026).
constexpr double kLostAlignment = 1.2;

std::array<ConstantSpec, kTileConstantCount> TritonSpecs() {
  std::array<ConstantSpec, kTileConstantCount> specs = kTileConstantSpecs;
  specs[kAlignA].initial = specs[kAlignB].initial = kLostAlignment;
  return specs;
}
const std::array<ConstantSpec, kTileConstantCount> kTritonSpecs = TritonSpecs();

}  // namespace

const FamilyEntry kTritonFamily = {KernelFamily::kTriton, kTritonSpecs, MakeTriton, "BM", ReadTriton};

}  // namespace portolan
