#include "select/family_tensile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/gemm_tiles.h"

namespace portolan {
namespace {

enum Constant {
  kLaunch,
  kMatrixShare,
  kLdsExposed,
  kStagedExposed,
  kLoopClocks,
  kSingleBufferClocks,
  kNoPrefetchClocks,
  kClusteredRead,
  kShortStep,
  kTransposedRead,
  kTransposedLdsRead,
  kNarrowRead,
  kWideInstruction,
  kOddTile,
  kHandNN,
  kHandNT,
  kHandTN,
  kHandClustered,
  kFillExposed,
  kFillMiss,
  kHbmShare,
  kFirstFillShare,
  kEpilogueShare,
  kStore1,
  kStore2,
  kStore4,
  kNonTemporalStore,
  kPartialFixed,
  kPartialShare,
  kPartialRows32,
  kPartialRows16,
  kPartialNonTemporal,
  kChunkedSplit,
  kIdleClock,
  kStagger,
  kStreamedB,
  kConstantCount
};

// Initial values: instruction and data-sheet arithmetic; nothing of gfx950 is in them.
constexpr std::array<ConstantSpec, kConstantCount> kSpecs = {{
    {"launch_s", 4e-6, 1e-6, 1e-5, "s: start of the grid to its first instruction, first loads, and its end"},
    {"matrix_share", 1.0, 0.5, 1.5, "of the sustained matrix rate that the instructions reach alone"},
    {"lds_exposed", 0.1, 0.001, 1.0, "share of the LDS read clocks (128 B each) that matrix instructions do not hide"},
    {"staged_exposed", 0.2, 0.001, 2.0, "the same of LDS write clocks of operands that pass through registers"},
    {"loop_clocks", 120.0, 5.0, 600.0, "clocks an iteration: barrier, waits, loop control"},
    {"single_buffer_clocks", 60.0, 1.0, 400.0, "clocks an iteration: second barrier with one LDS buffer"},
    {"no_prefetch_clocks", 100.0, 1.0, 400.0, "clocks an iteration: LDS latency without local prefetch"},
    {"clustered_read", 0.0, -1.0, 1.0, "share of loop_clocks: local reads clustered"},
    {"short_step", 0.0, -1.0, 1.0, "share of loop_clocks: 64 bytes of K an iteration against 128"},
    {"transposed_read", 0.3, 0.001, 3.0, "LDS read clocks of an operand not contiguous along K, added"},
    {"transposed_lds_read", 0.1, 0.001, 3.0, "the same with transposed LDS"},
    {"narrow_read", 0.1, 0.001, 0.5, "share of the matrix clocks: global reads under 16 bytes"},
    {"wide_instruction", 0.0, -0.2, 0.2, "share of the loop: 32x32 instructions against 16x16"},
    {"odd_tile", 0.14, 0.001, 1.0,
     "share of the matrix clocks: tile side no multiple of 128 along the contiguous axis"},
    {"hand_nn_clocks", 60.0, 1.0, 800.0, "clocks an iteration of a hand-scheduled loop, NN"},
    {"hand_nt_clocks", 60.0, 1.0, 800.0, "the same, NT"},
    {"hand_tn_clocks", 60.0, 1.0, 800.0, "the same, TN"},
    {"hand_clustered", 0.0, -1.0, 1.0, "share of hand_nn_clocks: clustered local reads in a hand-scheduled loop"},
    {"fill_exposed", 0.15, 0.005, 2.0, "share of the time to fill the L2s that the loop does not hide"},
    {"fill_miss", 0.5, 0.01, 5.0, "more of it where a wave's operands exceed the memory-side cache"},
    {"hbm_share", 0.85, 0.4, 1.1, "of hbm_peak"},
    {"first_fill_share", 1.0, 0.1, 20.0, "of hbm_sustained at which all units load the first step of a tile"},
    {"epilogue_share", 1.0, 0.2, 5.0, "of hbm_sustained at which all units write their tiles"},
    {"store_1", 0.5, 0.0, 2.0, "more epilogue with a store vector of 1 against 8 elements"},
    {"store_2", 0.1, 0.0, 2.0, "the same, 2"},
    {"store_4", 0.0, -0.2, 2.0, "the same, 4"},
    {"nontemporal_store", 0.0, -0.5, 0.5, "more epilogue with non-temporal stores"},
    {"partial_fixed_s", 1.5e-6, 1e-7, 1e-5, "s: flags of a tile that work-groups share"},
    {"partial_share", 0.5, 0.05, 20.0, "of the memory-side cache's rate, fp32 written and read"},
    {"partial_rows_32", 0.3, 0.0, 4.0, "more partial-sum time with 32 rows at once against 64"},
    {"partial_rows_16", 0.6, 0.0, 4.0, "the same, 16 rows"},
    {"partial_nontemporal", 0.0, -0.5, 2.0, "more partial-sum time with non-temporal stores"},
    {"chunked_split_s", 1e-7, 1e-8, 1e-5, "s: tiles shared by work-groups of one die (WGMXCC)"},
    {"idle_clock", 0.3, 0.0, 1.0, "loop time ~ (busy units / units)^x: the clock rises when units idle"},
    {"stagger", 0.0, -0.05, 0.05, "share of the time: staggered K start"},
    {"streamed_b", 0.1, 0.0, 1.0, "share of the time: B loaded past the caches (hint 4)"},
}};

constexpr double kLdsBytesPerClock = 128.0;  // one CU, CDNA 1 to 4 (ROCm hardware documentation)
constexpr double kLineElements = 128.0;      // 256 bytes of bf16: two lines
constexpr double kMissSteepness = 3.0;       // of the logistic in log(operands of a wave / memory-side cache)
constexpr int kDefaultSwizzle = 8;           // WGM of every kernel in hipBLASLt's gfx950 tables

double Fourth(double x) { return (x * x) * (x * x); }
double FourthRoot(double x) { return std::sqrt(std::sqrt(x)); }

// A kernel with all that does not depend on the problem worked out. Layout index: GemmLayout.
struct Ready {
  double tile_0 = 1, tile_1 = 1, step = 1;
  size_t geometry = 0;                      // kernels with the same number agree in what WalkOf reads
  std::array<double, 3> matrix{}, extra{};  // s an iteration
  double first_fill = 0, epilogue = 0, partial = 0, partial_fixed = 0, chunked_split = 0;  // s a tile
  double factor = 1, swizzle = 8;
  bool stream_k = false, supported = false;
  WorkGroupOrder order = WorkGroupOrder::kRoundRobin;

  bool WalksLike(const Ready& other) const {
    return tile_0 == other.tile_0 && tile_1 == other.tile_1 && step == other.step && swizzle == other.swizzle &&
           stream_k == other.stream_k && order == other.order;
  }
};

// How the work-groups of one problem walk over the tiles, the same for all kernels of one geometry.
struct Walk {
  double grid = 1, iterations = 1, segments = 1, parts = 1;
  double busy = 1;  // loop time over that with all units busy
  double mall = 0;  // s: filling the dies' L2s, as far as the loop does not hide it
  bool split = false, straddle = false, uneven = false;
};

class TensileModel : public FamilyModel {
 public:
  TensileModel(const Accelerator& accelerator, const FamilyConstants& constants) : compute_(constants.compute) {
    std::copy_n(constants.values.begin(), kConstantCount, c_.begin());
    units_ = std::max(1, accelerator.compute_units);
    dies_ = std::max(1, accelerator.dies);
    unit_rate_ = GemmRate(compute_, accelerator).value / units_;
    const double peak = accelerator.peak_matrix[compute_].value;
    flops_per_clock_ = std::max(1.0, peak / units_ / std::max(1.0, accelerator.clock_boost.value));
    shared_memory_ = accelerator.shared_memory_per_unit.value;
    hbm_ = accelerator.hbm_peak.value * c_[kHbmShare];
    hbm_sustained_ = accelerator.hbm_sustained.value;
    mall_ = accelerator.mall.value;
    mall_rate_ = accelerator.mall_rate.value > 0.0 ? accelerator.mall_rate.value : hbm_sustained_;
  }

  bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return problem.compute == compute_ && problem.groups <= 1 && Prepared(kernel).supported;
  }
  KernelTerms Score(const GemmProblem& problem, const GemmKernel& kernel) const override {
    return TermsOf(problem, Prepared(kernel));
  }
  KernelTerms TermsOf(const GemmProblem& problem, const Ready& ready) const {
    return Evaluate<true>(problem, ready, WalkOf(problem, ready), HbmSeconds(problem));
  }
  std::unique_ptr<KernelScorer> Prepare(std::span<const GemmKernel> kernels) const override;

  Ready Prepared(const GemmKernel& k) const {
    Ready r;
    const double bytes = SizeOf(compute_).value;
    r.tile_0 = std::max<int>(1, k.tile_n);
    r.tile_1 = std::max<int>(1, k.tile_m);
    r.step = std::max<int>(1, k.tile_k);
    const bool one_buffer = k.extra[kOneLdsBuffer] == 1;
    r.supported =
        k.tile_n > 0 && k.tile_m > 0 && k.tile_k > 0 &&
        (r.tile_0 + r.tile_1) * r.step * bytes * (one_buffer ? 1.0 : 2.0) <= std::max(1.0, shared_memory_) * 1.1;
    r.stream_k = k.stream_k > 0;
    r.swizzle = k.swizzle > 0 ? k.swizzle : kDefaultSwizzle;
    r.order = k.xcd_mapping > 1 ? WorkGroupOrder::kChunked : WorkGroupOrder::kRoundRobin;

    const double clock = unit_rate_ / flops_per_clock_;  // clocks a second under load
    const double matrix_clocks = 2.0 * r.tile_0 * r.tile_1 * r.step / flops_per_clock_;
    const double waves = std::max<int>(1, k.waves);
    const double instruction = std::max<int>(16, k.instruction_m);
    const double wave_0 = k.wave_tile_n > 0 ? k.wave_tile_n * instruction : r.tile_0 / 2.0;
    const double wave_1 = k.wave_tile_m > 0 ? k.wave_tile_m * instruction : r.tile_1 / 2.0;
    const double read_0 = waves * wave_0 * r.step * bytes / kLdsBytesPerClock;
    const double read_1 = waves * wave_1 * r.step * bytes / kLdsBytesPerClock;
    const double staged = ((k.direct_to_lds_a == 1 ? 0.0 : r.tile_0) + (k.direct_to_lds_b == 1 ? 0.0 : r.tile_1)) *
                          r.step * bytes / kLdsBytesPerClock;
    const bool narrow = (k.global_read_a > 0 && k.global_read_a * bytes < 16.0) ||
                        (k.global_read_b > 0 && k.global_read_b * bytes < 16.0);
    const double transposed = k.extra[kTransposeLds] > 0 ? c_[kTransposedLdsRead] : c_[kTransposedRead];
    for (int layout = 0; layout < 3; ++layout) {
      const auto l = static_cast<size_t>(layout);
      // BLAS's A is contiguous along K in TN, its B in TN and NN.
      const bool a_along_k = static_cast<GemmLayout>(layout) == GemmLayout::kTN;
      const bool b_along_k = static_cast<GemmLayout>(layout) != GemmLayout::kNT;
      double odd = 0.0;
      if (!a_along_k && std::fmod(r.tile_0, kLineElements) > 0.0) odd += c_[kOddTile];
      if (!b_along_k && std::fmod(r.tile_1, kLineElements) > 0.0) odd += c_[kOddTile];
      double clocks = 0.0;
      if (k.hand_scheduled == 1) {
        clocks = c_[a_along_k   ? kHandTN
                    : b_along_k ? kHandNN
                                : kHandNT] +
                 (k.extra[kClusterLocalRead] == 1 ? c_[kHandClustered] * c_[kHandNN] : 0.0) + odd * matrix_clocks;
      } else {
        clocks = c_[kLdsExposed] * (read_0 + read_1) + c_[kStagedExposed] * staged + c_[kLoopClocks];
        if (one_buffer) clocks += c_[kSingleBufferClocks];
        if (k.local_prefetch == 0) clocks += c_[kNoPrefetchClocks];
        if (k.extra[kClusterLocalRead] == 1) clocks += c_[kClusteredRead] * c_[kLoopClocks];
        if (r.step * bytes < 128.0) clocks += c_[kShortStep] * c_[kLoopClocks];
        clocks += transposed * ((a_along_k ? 0.0 : read_0) + (b_along_k ? 0.0 : read_1));
        clocks += (narrow ? c_[kNarrowRead] : 0.0) * matrix_clocks + odd * matrix_clocks;
        if (instruction >= 32.0) clocks += c_[kWideInstruction] * (matrix_clocks + clocks);
      }
      r.matrix[l] = matrix_clocks / clock / c_[kMatrixShare];
      r.extra[l] = clocks / clock / c_[kMatrixShare];
    }

    r.first_fill = (r.tile_0 + r.tile_1) * r.step * bytes / (c_[kFirstFillShare] * hbm_sustained_);
    const int store = k.store_vector;
    const double narrow_store = store == 1 ? c_[kStore1] : store == 2 ? c_[kStore2] : store == 4 ? c_[kStore4] : 0.0;
    const bool nt_d = k.extra[kNonTemporalD] >= 4;
    r.epilogue = r.tile_0 * r.tile_1 * units_ / (c_[kEpilogueShare] * hbm_sustained_) * (1.0 + narrow_store) *
                 (1.0 + (nt_d ? c_[kNonTemporalStore] : 0.0));  // times bytes of D
    const double rows_factor = k.extra[kRowsAtOnce] == 32   ? 1.0 + c_[kPartialRows32]
                               : k.extra[kRowsAtOnce] == 16 ? 1.0 + c_[kPartialRows16]
                                                            : 1.0;
    r.partial_fixed = c_[kPartialFixed];
    r.partial = 8.0 * r.tile_0 * r.tile_1 * units_ / (c_[kPartialShare] * mall_rate_) * rows_factor *
                (1.0 + (nt_d ? c_[kPartialNonTemporal] : 0.0));
    r.chunked_split = r.order == WorkGroupOrder::kChunked ? c_[kChunkedSplit] : 0.0;
    const bool stagger = k.extra[kStaggerU] > 0;
    r.factor = 1.0 + (stagger ? c_[kStagger] : 0.0) + (k.extra[kNonTemporalB] >= 4 ? c_[kStreamedB] : 0.0);
    return r;
  }

  Walk WalkOf(const GemmProblem& p, const Ready& r) const {
    Walk w;
    const double m = static_cast<double>(p.n), n = static_cast<double>(p.m), k = static_cast<double>(p.k);
    const double batch = static_cast<double>(std::max<int64_t>(1, p.batch));
    const double units = p.usable_units > 0 ? std::min<double>(units_, p.usable_units) : units_;
    const double tiles_0 = std::ceil(m / r.tile_0), tiles_1 = std::ceil(n / r.tile_1);
    const double tiles = tiles_0 * tiles_1 * batch;
    const double steps = std::max(1.0, std::ceil(k / r.step));
    w.grid = r.stream_k ? StreamKGrid(tiles, steps, units) : std::min(tiles, units);
    const double per_group = tiles / w.grid;
    w.iterations = r.stream_k ? per_group * steps : std::ceil(tiles / units) * steps;
    w.split = r.stream_k && tiles < w.grid;
    w.parts = w.split ? std::floor(w.grid / tiles + 0.5) : 1.0;
    w.straddle = w.split && std::fmod(steps, w.parts) > 0.0;
    w.uneven = r.stream_k && !w.split && per_group != std::floor(per_group);
    w.segments = w.split ? (w.straddle ? 2.0 : 1.0) : w.uneven ? std::ceil(per_group) + 1.0 : std::ceil(per_group);
    w.busy = units_ > w.grid ? std::pow(w.grid / units_, c_[kIdleClock]) : 1.0;

    const double at_once = std::min(w.grid, tiles * w.parts);
    const DiePanels panels = PanelsOfDie(tiles_0, tiles_1, at_once, w.parts, r.swizzle, dies_, r.order);
    const double bytes = SizeOf(p.a).value;
    const double wide = std::min(r.swizzle, tiles_1), tall = std::min(tiles_0, std::max(1.0, at_once / w.parts / wide));
    const double blocks = std::max(1.0, at_once / w.parts / (wide * tiles_0));
    const double wave_bytes = (tall * r.tile_0 + std::min(wide * std::ceil(blocks), tiles_1) * r.tile_1) * k * bytes;
    double miss = 0.0;
    if (mall_ > 0.0) {
      const double ratio = wave_bytes / mall_, cube = ratio * ratio * ratio;
      static_assert(kMissSteepness == 3.0);
      miss = cube / (1.0 + cube);
    }
    w.mall = w.iterations * (panels.rows * r.tile_0 + panels.columns * r.tile_1) * r.step * bytes * dies_ / mall_rate_ *
             c_[kFillExposed] * (1.0 + c_[kFillMiss] * miss);
    return w;
  }

  double HbmSeconds(const GemmProblem& p) const {
    const double m = static_cast<double>(p.n), n = static_cast<double>(p.m), k = static_cast<double>(p.k);
    const double batch = static_cast<double>(std::max<int64_t>(1, p.batch));
    return batch *
           (m * k * SizeOf(p.b).value + n * k * SizeOf(p.a).value + m * n * SizeOf(p.d).value * OutputPasses(p)) / hbm_;
  }

  // `w` = WalkOf(p, r), `hbm` = HbmSeconds(p).
  template <bool kTerms>
  KernelTerms Evaluate(const GemmProblem& p, const Ready& r, const Walk& w, double hbm) const {
    KernelTerms t;
    const auto layout = static_cast<size_t>(p.layout);
    const double matrix = w.iterations * r.matrix[layout] * w.busy, lds = w.iterations * r.extra[layout] * w.busy;
    const double mall = w.mall;
    const double loop = matrix + lds + mall;
    const double body = hbm > 0.2 * loop ? FourthRoot(Fourth(loop) + Fourth(hbm)) : loop;
    const double epilogue = w.segments * r.epilogue * SizeOf(p.d).value;
    const double prologue = w.segments * w.grid * r.first_fill;
    double reduction = 0.0;
    if (w.split || w.uneven) {
      reduction = r.partial_fixed + r.partial * std::max(w.parts, 2.0) * 0.5;
      if (w.straddle) reduction *= 2.0;
      if (w.split) reduction += r.chunked_split;
    }
    t.total = (c_[kLaunch] + prologue + body + epilogue + reduction) * r.factor;
    if constexpr (kTerms) {
      t.launch = c_[kLaunch];
      t.prologue = prologue;
      t.matrix = matrix;
      t.lds = lds;
      t.mall = mall;
      t.hbm = hbm;
      t.main_loop = body;
      t.epilogue = epilogue;
      t.split_reduction = reduction;
      t.residual = t.total - (c_[kLaunch] + prologue + body + epilogue + reduction);
    }
    return t;
  }

  DType compute_;

 private:
  std::array<double, kConstantCount> c_{};
  double units_ = 1, dies_ = 1, unit_rate_ = 1, flops_per_clock_ = 1, shared_memory_ = 0, hbm_ = 1, hbm_sustained_ = 1,
         mall_ = 0, mall_rate_ = 1;
};

class TensileScorer : public KernelScorer {
 public:
  TensileScorer(const TensileModel& model, std::span<const GemmKernel> kernels) : model_(model) {
    for (const GemmKernel& kernel : kernels) {
      Ready ready = model.Prepared(kernel);
      size_t geometry = 0;
      while (geometry < walkers_.size() && !ready_[walkers_[geometry]].WalksLike(ready)) ++geometry;
      // What is left of a very varied catalogue shares nothing.
      if (geometry == walkers_.size() && geometry < kMostGeometries) walkers_.push_back(ready_.size());
      ready.geometry = geometry;
      ready_.push_back(ready);
    }
  }
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    const bool right = problem.compute == model_.compute_ && problem.groups <= 1;
    const double hbm = model_.HbmSeconds(problem);
    std::array<Walk, kMostGeometries> walks;
    for (size_t g = 0; right && g < walkers_.size(); ++g) walks[g] = model_.WalkOf(problem, ready_[walkers_[g]]);
    for (size_t i = 0; i < ready_.size(); ++i) {
      const Ready& ready = ready_[i];
      if (!right || !ready.supported) {
        seconds[i] = std::numeric_limits<double>::infinity();
      } else if (ready.geometry < kMostGeometries) {
        seconds[i] = model_.Evaluate<false>(problem, ready, walks[ready.geometry], hbm).total;
      } else {
        seconds[i] = model_.Evaluate<false>(problem, ready, model_.WalkOf(problem, ready), hbm).total;
      }
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override { return model_.TermsOf(problem, ready_[i]); }

 private:
  static constexpr size_t kMostGeometries = 128;

  const TensileModel& model_;
  std::vector<Ready> ready_;
  std::vector<size_t> walkers_;  // of each geometry one kernel, by its place in ready_
};

std::unique_ptr<KernelScorer> TensileModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<TensileScorer>(*this, kernels);
}

std::unique_ptr<FamilyModel> MakeTensile(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<TensileModel>(accelerator, constants);
}

}  // namespace

const FamilyEntry kTensileFamily = {KernelFamily::kTensile, kSpecs, MakeTensile, "mt0", ReadTensileColumns,
                                    FitMethod::kInsideLists};

}  // namespace portolan
