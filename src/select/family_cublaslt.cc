#include "select/family_cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "select/tile_lanes.h"
#include "select/tile_model.h"

namespace portolan {
namespace {

constexpr int kNvjetAlgo = 66, kClusterAlgo = 43;
enum PathClass { kNvjet, kCluster, kIssued, kOther };
constexpr std::array<const char*, kMaxTileClasses> kClassNames = {"nvjet", "cluster", "issued", "other"};

constexpr double kPipelineBytes = 220.0 * 1024;  // of shared memory left for operands beside the output's staging
constexpr double kStepBytes = 128.0;             // of K a step: one swizzled row of shared memory
constexpr double kInstructionRows = 64.0, kInstructionColumns = 256.0;  // warp-group matrix instruction (PTX ISA)
constexpr double kWarpTileSide = 64.0;                                  // of the older kernels, assumed
constexpr double kResidentElements = 32768.0;                           // fp32 accumulators of a unit, older kernels
constexpr int kLeastGridUnits = 100;     // a smaller count is that of a small problem's tiles
constexpr double kWaveUnits = 132.0;     // of the device on which the wave counts were read
constexpr double kSideOfUntiled = 64.0;  // what `other.` counts with

// Least alignment in bytes of the rows of A, B and D with which the library proposes an algorithm: the minimum over the
// 150,000 proposals of data/measured/h200 (bf16, tf32 and fp8, one H200, cuBLASLt 13.1, 2026-11-30). Bulk copies
// need 16. Algorithms that are not named were proposed at every alignment of whole elements.
int LeastAlignment(int algo) {
  constexpr int kVectorAlgos[] = {21, kClusterAlgo, kNvjetAlgo}, kWordAlgos[] = {23, 41};
  for (const int vector : kVectorAlgos) {
    if (algo == vector) return 16;
  }
  for (const int word : kWordAlgos) {
    if (algo == word) return 4;
  }
  return 1;
}
int RowAlignment(const GemmProblem& problem) {
  return std::min({RowAlignmentA(problem), RowAlignmentB(problem), RowAlignmentD(problem)});
}

// Units that clusters of a size fill on a device of 132 units, from the `waves` that cublasLtMatmulAlgoCheck reports
// for algo 43 (one H200, CUDA 13.0, 2026-11-30). Index = work-groups of a cluster; sizes between take the smaller
// neighbour's.
double ClusterUnits(int size, double units) {
  static constexpr std::array<double, 17> kOf132 = {132, 132, 132, 117, 120, 110, 108, 112, 120,
                                                    110, 110, 110, 104, 104, 112, 104, 112};
  return std::floor(units * kOf132[static_cast<size_t>(std::clamp(size, 1, 16))] / 132.0);
}

const char* LayoutName(GemmLayout layout) {
  return layout == GemmLayout::kTN ? "TN" : layout == GemmLayout::kNN ? "NN" : "NT";
}

class CublasLtModel : public FamilyModel {
 public:
  CublasLtModel(const Accelerator& accelerator, const FamilyConstants& constants)
      : device_(DescribeTileDevice(accelerator, constants.compute)), constants_(constants) {
    for (size_t i = 0; i < kMaxTileClasses; ++i) {
      std::copy_n(constants.values.begin() + static_cast<std::ptrdiff_t>(i * kTileConstantCount), kTileConstantCount,
                  classes_[i].begin());
    }
  }

  bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return problem.compute == constants_.compute && RowAlignment(problem) >= LeastAlignment(kernel.algo);
  }

  KernelTerms Score(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return EvaluateTile(DescribeTileProblem(problem, device_, classes_), Ready(kernel));
  }

  KernelRegime Regime(const GemmProblem& problem, const GemmKernel& kernel) const override {
    KernelRegime regime;
    EvaluateTile(DescribeTileProblem(problem, device_, classes_), Ready(kernel), &regime);
    return regime;
  }

  std::vector<std::string> FactorKeys(const GemmProblem& problem, const GemmKernel& kernel) const override {
    std::vector<std::string> keys;
    const std::span<const char* const> slopes(kSlopeSuffixes);
    ForEachKey(kernel, [&](const std::string& key, int layout, bool sloped) {
      if (layout >= 0 && layout != static_cast<int>(problem.layout)) return;
      AppendFactorKeys(key, sloped ? slopes : slopes.first(0), &keys);
    });
    return keys;
  }

  std::unique_ptr<KernelScorer> Prepare(std::span<const GemmKernel> kernels) const override;

 private:
  friend class CublasLtScorer;

  // Algo 43 without a split of its own lists two kinds of kernels: those that leave the split open and ask for room for
  // partial tiles, and those with split 1.
  static bool StreamK(const GemmKernel& k) { return k.algo == kClusterAlgo && k.split_k < 1; }

  // Units that a persistent grid fills, where the library's wave count says so (ReadCublasLt); 0 = not said.
  static int GridUnits(const GemmKernel& k) {
    return k.algo == kClusterAlgo && k.extra[0] > 0 && (StreamK(k) || k.extra[0] >= kLeastGridUnits) ? k.extra[0] : 0;
  }

  static PathClass ClassOf(const GemmKernel& k) {
    if (k.algo == kNvjetAlgo) return kNvjet;
    if (k.algo == kClusterAlgo) return kCluster;
    return k.tile_m > 0 && k.tile_n > 0 ? kIssued : kOther;
  }

  // Calls use(key, layout or -1, sloped).
  template <typename Use>
  static void ForEachKey(const GemmKernel& k, const Use& use) {
    use(fmt::format("algo={}", k.algo), -1, true);
    use(fmt::format("rows={}/{}", k.algo, k.tile_n), -1, true);
    use(fmt::format("columns={}/{}", k.algo, k.tile_m), -1, true);
    use(fmt::format("tile={}/{}", k.algo, k.tile_id), -1, true);
    use(fmt::format("custom={}/{}", k.algo, k.custom), -1, true);
    use(fmt::format("cluster={}/{}", k.algo, k.cluster_id), -1, true);
    use(fmt::format("stages={}/{}", k.algo, k.stages_id), -1, false);
    use(fmt::format("reduction={}/{}/{}", k.algo, k.reduction_id,
                    k.split_k > 1   ? "split"
                    : k.split_k < 1 ? "auto"
                                    : "one"),
        -1, true);
    use(fmt::format("swizzle={}/{}", k.algo, k.swizzle), -1, true);
    use(fmt::format("path={}/{}/{}/{}", k.algo, k.tile_id, k.custom, k.cluster_id), -1, true);
    if (GridUnits(k) >= kLeastGridUnits)
      use(fmt::format("grid={}/{}/{}", k.algo, k.cluster_id, GridUnits(k)), -1, true);
    for (int layout = 0; layout < kLayouts; ++layout) {
      const char* name = LayoutName(static_cast<GemmLayout>(layout));
      use(fmt::format("layout={}/{}", k.algo, name), layout, true);
      use(fmt::format("tile={}/{}/{}", k.algo, k.tile_id, name), layout, true);
      use(fmt::format("cluster={}/{}/{}", k.algo, k.cluster_id, name), layout, true);
    }
    if (k.rank >= 0) use(fmt::format("rank={}", k.rank), -1, false);
  }

  TileKernel Ready(const GemmKernel& k) const {
    const PathClass path = ClassOf(k);
    const TileConstants& c = classes_[path];
    const double bytes = SizeOf(constants_.compute == DType::kTf32 ? DType::kFp32 : constants_.compute).value;
    const double tn = k.tile_n > 0 ? k.tile_n : kSideOfUntiled, tm = k.tile_m > 0 ? k.tile_m : kSideOfUntiled;
    TileKernel r = MakeTileKernel(tm, tn, kStepBytes / bytes, k.split_k);
    r.tile_class = path;
    r.cluster_m = std::max<int>(1, k.cluster_m);
    r.cluster_n = std::max<int>(1, k.cluster_n);
    const bool bulk = path == kNvjet || path == kCluster;
    r.units = bulk ? ClusterUnits(k.cluster_m * k.cluster_n, device_.units) : device_.units;
    if (GridUnits(k) > 0) r.units = std::floor(device_.units * GridUnits(k) / kWaveUnits);
    r.occupancy = bulk ? 1.0 : std::clamp(std::floor(kResidentElements / (tm * tn)), 1.0, 5.0);
    r.aspect = std::sqrt(tn / tm);
    r.bytes_k = bytes;

    const double step_bytes = (tm + tn) * kStepBytes;
    const double stages = k.stages > 0 ? k.stages
                          : bulk       ? std::clamp(std::floor(kPipelineBytes / step_bytes), 2.0, 10.0)
                                       : 4.0;
    const double flops = 2.0 * tm * tn * r.step_k;
    const double matrix = flops / (device_.matrix_rate * c[kMatrixShare]);
    r.matrix = {matrix, matrix * std::exp(c[kLayoutNN]), matrix * std::exp(c[kLayoutNT])};
    double read = 0.0;  // bytes of shared memory a step
    if (bulk) {
      // Instructions run 64 rows of one side against up to 256 of the other; the library takes the better side.
      const auto reads = [&](double rows, double columns) {
        return (rows * std::ceil(columns / kInstructionColumns) + std::ceil(rows / kInstructionRows) * columns) *
               kStepBytes;
      };
      const bool by_n = std::fmod(tn, kInstructionRows) == 0.0, by_m = std::fmod(tm, kInstructionRows) == 0.0;
      read = by_n && by_m ? std::min(reads(tn, tm), reads(tm, tn)) : by_m ? reads(tm, tn) : reads(tn, tm);
    } else {
      read = 2.0 * tm * tn / kWarpTileSide * kStepBytes;
    }
    r.lds = (read + c[kLdsWrite] * step_bytes) / (device_.lds_rate * c[kLdsShare]);
    r.step_l2_bytes = (tn / r.cluster_m + tm / r.cluster_n) * kStepBytes;
    r.l2 = r.step_l2_bytes / (device_.l2_rate / device_.units * c[kL2UnitShare]);
    r.issue = bulk ? 0.0 : c[kIssue] * step_bytes / 16.0 / 32.0;
    r.step = c[kStep];
    r.wait = c[kLatency] / std::max(1.0, stages - 1.0);
    r.prologue = c[kPrologue];
    r.epilogue_tile = c[kEpilogue] * tm * tn;
    r.epilogue_fixed = c[kEpilogueFixed];
    r.launch = c[kLaunch];
    r.seconds_per_hbm_byte = 1.0 / (device_.hbm_rate * c[kHbmShare]);
    r.seconds_per_l2_byte = 1.0 / (device_.l2_rate * c[kL2Share]);
    r.refetch = c[kRefetch];
    r.stream_k = StreamK(k);
    r.reduction =
        k.reduction == SplitReduction::kInPlace || r.stream_k ? c[kInPlace] * std::sqrt(r.split) : c[kWorkspace];
    // Written and read once each, in fp32 or (scheme 4) in the output's type, here of the operands' width.
    const double partial = k.reduction_id == 4 ? std::min(4.0, std::max(2.0, bytes)) : 4.0;
    r.seconds_per_partial = 2.0 * partial / (device_.l2_rate * c[kReductionShare]);
    if (constants_.factors.empty()) return r;
    ForEachKey(k, [&](const std::string& key, int layout, bool) { AddFactors(constants_, key, &r, layout); });
    return r;
  }

  TileDevice device_;
  FamilyConstants constants_;
  std::array<TileConstants, kMaxTileClasses> classes_;
};

class CublasLtScorer : public KernelScorer {
 public:
  CublasLtScorer(const CublasLtModel& model, std::span<const GemmKernel> kernels) : model_(model) {
    std::vector<TileKernel> ready;
    for (const GemmKernel& kernel : kernels) {
      ready.push_back(model.Ready(kernel));
      least_alignment_.push_back(LeastAlignment(kernel.algo));
    }
    lanes_ = TileLanes(std::move(ready));
  }
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    lanes_.ScoreAll(DescribeTileProblem(problem, model_.device_, model_.classes_), seconds);
    const bool right_type = problem.compute == model_.constants_.compute;
    const int alignment = RowAlignment(problem);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (!right_type || alignment < least_alignment_[i]) seconds[i] = std::numeric_limits<double>::infinity();
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override {
    return EvaluateTile(DescribeTileProblem(problem, model_.device_, model_.classes_), lanes_.kernel(i));
  }

 private:
  const CublasLtModel& model_;
  TileLanes lanes_;
  std::vector<int> least_alignment_;
};

std::unique_ptr<KernelScorer> CublasLtModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<CublasLtScorer>(*this, kernels);
}

std::unique_ptr<FamilyModel> MakeCublasLt(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<CublasLtModel>(accelerator, constants);
}

// The engine's constants once a class, "nvjet.launch_s" and so on.
std::span<const ConstantSpec> ClassSpecs() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const char* name : kClassNames) {
      for (const ConstantSpec& spec : kTileConstantSpecs) names.push_back(std::string(name) + "." + spec.name);
    }
    return names;
  }();
  static const std::vector<ConstantSpec> kSpecs = [] {
    std::vector<ConstantSpec> specs;
    for (size_t i = 0; i < kNames.size(); ++i) {
      specs.push_back(kTileConstantSpecs[i % kTileConstantCount]);
      specs.back().name = kNames[i].c_str();
      const size_t path = i / kTileConstantCount;
      if (path >= kIssued && i % kTileConstantCount == kMatrixShare)
        specs.back().initial *= path == kOther ? 0.37 : 0.6;
      if (path == kIssued && i % kTileConstantCount == kStep) specs.back().initial *= 2.0;
    }
    return specs;
  }();
  return kSpecs;
}

void ReadCublasLt(CsvRow& row, GemmKernel* kernel) {
  const auto number = [&](const char* column, int64_t most, int64_t fallback) {
    return static_cast<int16_t>(row.Integer(column, {-1, most}, fallback));
  };
  kernel->algo = number("algo", 9999, -1);
  kernel->tile_id = number("tile", 9999, 0);
  kernel->stages_id = number("stages", 9999, 0);
  kernel->split_k = number("splitk", 9999, 1);  // 0 and -1 = not set
  kernel->reduction_id = number("reduction", 9999, 0);
  kernel->swizzle = number("swizzle", 9999, 0);
  kernel->custom = number("custom", 9999, 0);
  kernel->inner = number("inner", 9999, 0);
  kernel->cluster_id = number("cluster", 9999, 0);
  kernel->rank = number("rank", 9999, -1);
  // The library's wave count belongs to one problem, as the rank does.
  kernel->extra[0] = static_cast<int16_t>(std::clamp(std::lround(row.Number("waves", 0.0) * kWaveUnits), 0L, 9999L));
  SetCublasLtIds(kernel);
}

}  // namespace

const FamilyEntry kCublasLtFamily = {KernelFamily::kCublasLt, ClassSpecs(), MakeCublasLt, "algo", ReadCublasLt};

}  // namespace portolan
