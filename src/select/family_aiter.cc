#include "select/family_aiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cost/gemm.h"
#include "select/family_tensile.h"
#include "select/tile_lanes.h"
#include "select/tile_model.h"

namespace portolan {
namespace {

constexpr size_t kClasses = 2;
constexpr size_t kConstantCount = kTileConstantCount * kClasses;

std::array<ConstantSpec, kConstantCount> Specs() {
  static std::array<std::string, kTileConstantCount> names;
  std::array<ConstantSpec, kConstantCount> specs{};
  for (size_t i = 0; i < kTileConstantCount; ++i) {
    names[i] = std::string("split_") + kTileConstantSpecs[i].name;
    specs[i] = kTileConstantSpecs[i];
    specs[i + kTileConstantCount] = kTileConstantSpecs[i];
    specs[i + kTileConstantCount].name = names[i].c_str();
  }
  return specs;
}
const std::array<ConstantSpec, kConstantCount> kSpecs = Specs();

constexpr double kWaveRegisters = 512.0;  // 32-bit registers of one lane, arithmetic and accumulation (CDNA 3, 4)
constexpr int16_t kTypicalTile = 128;     // stands for a tile that the library picks
constexpr double kMostResident = 8.0;     // work-groups of one unit, assumed

class AiterModel : public FamilyModel {
 public:
  AiterModel(const Accelerator& accelerator, const FamilyConstants& constants)
      : device_(DescribeTileDevice(accelerator, constants.compute)), constants_(constants) {
    for (size_t c = 0; c < kClasses; ++c) {
      std::copy_n(constants.values.begin() + static_cast<std::ptrdiff_t>(c * kTileConstantCount), kTileConstantCount,
                  classes_[c].begin());
    }
  }

  bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return Fits(problem) && (kernel.tile_m > 0) == (kernel.tile_n > 0);
  }
  KernelTerms Score(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return Terms(problem, Ready(kernel), nullptr);
  }
  KernelRegime Regime(const GemmProblem& problem, const GemmKernel& kernel) const override {
    KernelRegime regime;
    Terms(problem, Ready(kernel), &regime);
    return regime;
  }
  std::vector<std::string> FactorKeys(const GemmProblem&, const GemmKernel& kernel) const override {
    std::vector<std::string> keys;
    const std::span<const char* const> slopes = std::span(kSlopeSuffixes).first(3);  // depth, fill, traffic
    ForEachKey(kernel, [&](const std::string& key, bool sloped) {
      AppendFactorKeys(key, sloped ? slopes : slopes.first(0), &keys);
    });
    return keys;
  }
  std::unique_ptr<KernelScorer> Prepare(std::span<const GemmKernel> kernels) const override;

 private:
  friend class AiterScorer;

  // A kernel whose library picks the parts of K (stream-K) or the tile (torch, Triton's autotuner) for the problem.
  struct Code {
    TileKernel tile;
    bool stream_k = false, chosen_by_library = false;
  };

  bool Fits(const GemmProblem& problem) const {
    return problem.compute == constants_.compute && problem.layout == GemmLayout::kTN && problem.groups <= 1;
  }

  KernelTerms Terms(const GemmProblem& problem, const Code& code, KernelRegime* regime) const {
    const TileProblem p = DescribeTileProblem(problem, device_, classes_);
    if (code.chosen_by_library) return LibraryTerms(LibraryBest(problem), p, code, regime);
    if (!code.stream_k) return EvaluateTile(p, code.tile, regime);
    return EvaluateTile(p, StreamK(p, code.tile), regime);
  }

  static double TilesOf(const TileProblem& p, const TileKernel& kernel) {
    return std::ceil(p.m * kernel.inv_tile_m) * std::ceil(p.n * kernel.inv_tile_n) * p.batch;
  }
  static double UnitsOf(const TileProblem& p, const TileKernel& kernel) {
    return std::max(1.0, std::floor(kernel.units * p.usable_share));
  }
  // Whether a stream-K kernel divides K: only where the tiles do not fill the device.
  static bool CutsTiles(const TileProblem& p, const TileKernel& kernel) {
    return TilesOf(p, kernel) < UnitsOf(p, kernel);
  }

  static TileKernel StreamK(const TileProblem& p, TileKernel kernel) {
    const double tiles = TilesOf(p, kernel), units = UnitsOf(p, kernel);
    if (tiles < units) {
      kernel.split = StreamKGrid(tiles, std::ceil(p.k * kernel.inv_step_k), units) / tiles;
      kernel.inv_split = 1.0 / kernel.split;
    }
    return kernel;
  }

  // The best kernel that a library has.
  Estimate LibraryBest(const GemmProblem& problem) const {
    return GemmEstimate(ShapeOf(problem), device_.accelerator, problem.inputs);
  }
  // `best` times the factor of the code path.
  KernelTerms LibraryTerms(const Estimate& best, const TileProblem& p, const Code& code, KernelRegime* regime) const {
    KernelRegime where;
    EvaluateTile(p, code.tile, &where);
    if (regime != nullptr) *regime = where;
    const TileKernel& k = code.tile;
    // cost/gemm prices the whole device; on a share of its units the arithmetic takes longer, the memory does not.
    const double whole = std::max(0.0, best.total.value - best.launch.value);
    const double main_loop = std::max(whole, best.compute.value / p.usable_share);
    const double factor =
        std::exp(k.factor[0] + k.by_depth * where.depth + k.by_fill * where.fill + k.by_traffic * where.traffic);
    KernelTerms t;
    t.launch = best.launch.value;
    t.matrix = best.compute.value / p.usable_share;
    t.hbm = best.memory.value;
    t.main_loop = main_loop;
    const double total = best.launch.value + main_loop;
    t.total = total * factor;
    t.residual = t.total - total;
    return t;
  }

  template <typename Use>
  static void ForEachKey(const GemmKernel& k, const Use& use) {
    const int other = static_cast<int>(AiterGenerations().size()) - 1;
    const int generation = k.extra[kGeneration] < 0 ? other : k.extra[kGeneration];
    const char* name = AiterGenerations()[static_cast<size_t>(std::min(generation, other))];
    const std::string tile = fmt::format("{}/{}x{}x{}", name, k.tile_m, k.tile_n, k.tile_k);
    const int scales = std::max<int>(0, k.extra[kScales]);
    use(fmt::format("code={}", name), true);
    use(fmt::format("scale={}/{}", scales, name), true);
    use(fmt::format("tile={}x{}", k.tile_m, k.tile_n), true);
    use("cfg=" + tile, true);
    use(fmt::format("split={}/{}", name, k.split_k), false);
    use(fmt::format("variant={}/{}/{}/{}/{}", tile, k.waves, k.stages, k.extra[kVariantA], k.extra[kVariantB]), false);
  }

  Code Ready(const GemmKernel& kernel) const {
    GemmKernel described = kernel;
    Code code;
    code.stream_k = kernel.stream_k > 0;
    code.chosen_by_library = kernel.tile_m <= 0;
    if (code.chosen_by_library) described.tile_m = described.tile_n = kTypicalTile;
    code.tile = ReadyTile(described);
    if (!constants_.factors.empty()) {
      ForEachKey(kernel, [&](const std::string& key, bool) { AddFactors(constants_, key, &code.tile, -1); });
    }
    return code;
  }

  TileKernel ReadyTile(const GemmKernel& k) const {
    const bool split = k.split_k > 1 || k.stream_k > 0;
    const TileConstants& c = classes_[split ? 1 : 0];
    const double bytes = SizeOf(constants_.compute).value;
    const double bm = std::max<int>(1, k.tile_m), bn = std::max<int>(1, k.tile_n);
    const double bk = k.tile_k > 0 ? k.tile_k : 128.0 / bytes;
    const double waves = std::max<int>(1, k.waves);
    const double step_bytes = (bm + bn) * bk * bytes;
    TileKernel r = MakeTileKernel(bm, bn, bk, k.split_k);
    r.tile_class = split ? 1 : 0;
    r.units = device_.units;
    r.bytes_k = bytes;
    const double stages = k.stages > 1 ? k.stages : 2.0;
    const double lds = std::max(1.0, (k.extra[kPreshuffled] == 1 ? bm : bm + bn) * bk * bytes * stages);
    // Accumulators spread over the waves' lanes; four SIMDs a unit, 64 lanes a wave.
    const double registers = bm * bn / (waves * 64.0) + step_bytes / 4.0 / (waves * 64.0) + 64.0;
    r.occupancy = std::clamp(std::floor(std::min({device_.shared_memory / lds,
                                                  4.0 * std::floor(kWaveRegisters / registers) / waves, 32.0 / waves})),
                             1.0, kMostResident);
    const double narrow = bm < 32.0 ? std::min(c[kNarrow], 32.0 / bm) : 1.0;
    const double matrix = 2.0 * bm * bn * bk / (device_.matrix_rate * c[kMatrixShare]) * narrow *
                          std::exp(waves >= 8.0 ? c[kEightWarps] : 0.0);
    r.matrix = {matrix, matrix, matrix};
    const double wave_rows = k.extra[kWaveRows] > 0 ? k.extra[kWaveRows] : 1.0;
    const double read = bytes * bk * (bm * std::max(1.0, waves / wave_rows) + bn * wave_rows);
    r.lds = (read + c[kLdsWrite] * step_bytes) / (device_.lds_rate * c[kLdsShare]);
    r.l2 = step_bytes / (device_.l2_rate / device_.units * c[kL2UnitShare]);
    r.issue = c[kIssue] * step_bytes / 16.0 / 64.0;
    r.step = c[kStep];
    r.wait = c[kLatency] / std::max(1.0, stages - 1.0);
    r.prologue = c[kPrologue];
    r.epilogue_tile = c[kEpilogue] * bm * bn;
    r.epilogue_fixed = c[kEpilogueFixed];
    r.launch = c[kLaunch];
    r.seconds_per_hbm_byte = 1.0 / (device_.hbm_rate * c[kHbmShare]);
    r.seconds_per_l2_byte = 1.0 / (device_.l2_rate * c[kL2Share]);
    r.refetch = c[kRefetch];
    r.step_l2_bytes = step_bytes;
    r.reduction = c[kWorkspace];
    r.seconds_per_partial = 8.0 / (device_.l2_rate * c[kReductionShare]);
    return r;
  }

  TileDevice device_;
  FamilyConstants constants_;
  std::array<TileConstants, kClasses> classes_;
};

class AiterScorer : public KernelScorer {
 public:
  AiterScorer(const AiterModel& model, std::span<const GemmKernel> kernels) : model_(model) {
    std::vector<TileKernel> tiles;
    for (const GemmKernel& kernel : kernels) {
      ready_.push_back(model.Ready(kernel));
      tiles.push_back(ready_.back().tile);
      any_chosen_by_library_ = any_chosen_by_library_ || ready_.back().chosen_by_library;
    }
    lanes_ = TileLanes(std::move(tiles));
  }
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    const TileProblem p = DescribeTileProblem(problem, model_.device_, model_.classes_);
    const bool fits = model_.Fits(problem);
    if (!fits) {
      std::fill(seconds.begin(), seconds.end(), std::numeric_limits<double>::infinity());
      return;
    }
    lanes_.ScoreAll(p, seconds);
    const Estimate library = any_chosen_by_library_ ? model_.LibraryBest(problem) : Estimate{};
    for (size_t i = 0; i < ready_.size(); ++i) {
      const AiterModel::Code& code = ready_[i];
      if (code.chosen_by_library) {
        seconds[i] = model_.LibraryTerms(library, p, code, nullptr).total;
      } else if (code.stream_k && model_.CutsTiles(p, code.tile)) {
        seconds[i] = EvaluateTileTotal(p, model_.StreamK(p, code.tile));
      }
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override {
    return model_.Terms(problem, ready_[i], nullptr);
  }

 private:
  const AiterModel& model_;
  std::vector<AiterModel::Code> ready_;
  TileLanes lanes_;
  bool any_chosen_by_library_ = false;
};

std::unique_ptr<KernelScorer> AiterModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<AiterScorer>(*this, kernels);
}

std::unique_ptr<FamilyModel> MakeAiter(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<AiterModel>(accelerator, constants);
}

bool Holds(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

void ReadAiter(CsvRow& row, GemmKernel* kernel) {
  const std::string name = row.Text("kernel", "");
  const char* const implied = Holds(name, "blockscale")                      ? "block128"
                              : Holds(name, "mxpsh")                         ? "mx32"
                              : Holds(name, "a8w8") || Holds(name, "reshuf") ? "token"
                                                                             : "none";
  const std::string quant = row.Text("quant", implied);
  kernel->extra[kScales] = static_cast<int16_t>(quant == "token"      ? 1
                                                : quant == "block128" ? 2
                                                : quant == "mx32"     ? 3
                                                                      : 0);
  const bool named_shuffled = Holds(name, "bpreshu") || Holds(name, "BpreShu") || Holds(name, "mxpsh");
  const std::string shuffled = row.Text("bpreshuffle", named_shuffled ? "True" : "False");
  kernel->extra[kPreshuffled] = shuffled == "True" || shuffled == "1" ? 1 : 0;
  const auto size = [&](const char* column) { return static_cast<int16_t>(row.Integer(column, {0, 32767}, 0)); };
  kernel->tile_m = size("mt_m");
  kernel->tile_n = size("mt_n");
  kernel->tile_k = size("mt_k");
  AiterKernelFromName(row.Text("lib", ""), name, static_cast<int>(row.Integer("split_k", {0, 4096}, 0)), kernel);
}

}  // namespace

const FamilyEntry kAiterFamily = {KernelFamily::kAiter, kSpecs, MakeAiter, "lib", ReadAiter};

}  // namespace portolan
