#include "select/family_aiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "cost/gemm.h"
#include "select/family_tensile.h"
#include "select/tile_model.h"

namespace portolan {
namespace {

constexpr std::array<const char*, 34> kGenerations = {
    "flydsl_gemm1", "flydsl_gemm2", "flydsl_gemm3", "flydsl_gemm4", "flydsl_gemm5", "flydsl_gemm6", "flydsl_gemm7",
    "flydsl_gemm8", "flydsl_hgemm", "hgemm_old", "flydsl_mx", "flydsl_mx_split", "flydsl_preshuffle",
    "flydsl_preshuffle_5", "flydsl_preshuffle_xcd", "ck_token_v1", "ck_token_v2", "ck_token_v3", "ck_block_v1",
    "ck_block_v3", "ck_block_preshuffle_v1", "ck_block_preshuffle_v3", "cktile", "cktile_128", "cktile_block", "asm",
    "asm_split", "opus", "opus_split", "hipblaslt", "torch", "triton", "skinny", "other"};
constexpr int kOther = static_cast<int>(kGenerations.size()) - 1;

int16_t Generation(const char* name) {
  for (size_t i = 0; i < kGenerations.size(); ++i) {
    if (std::strcmp(kGenerations[i], name) == 0) return static_cast<int16_t>(i);
  }
  return kOther;
}

bool Has(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

// sscanf from the first occurrence of `anchor` (inclusive); how many numbers were read.
template <typename... Ints>
int Scan(const std::string& name, const char* anchor, const char* format, Ints*... values) {
  const size_t at = name.find(anchor);
  return at == std::string::npos ? 0 : std::sscanf(name.c_str() + at, format, values...);
}

void SetTile(int m, int n, int k, GemmKernel* kernel) {
  kernel->tile_m = static_cast<int16_t>(m);
  kernel->tile_n = static_cast<int16_t>(n);
  if (k > 0) kernel->tile_k = static_cast<int16_t>(k);
}
void SetWaves(int waves, GemmKernel* kernel) { kernel->waves = static_cast<int16_t>(waves); }
void SetSplit(int split, GemmKernel* kernel) { kernel->split_k = static_cast<int16_t>(std::max(1, split)); }
void SetVariant(int a, int b, GemmKernel* kernel) {
  kernel->extra[kVariantA] = static_cast<int16_t>(a);
  kernel->extra[kVariantB] = static_cast<int16_t>(b);
}

// flydsl_gemm4_abf16_wbf16_bf16_t32x64x128_split_k8_block_m_warp2_block_n_warp2_..._async_copyTrue_b_to_ldsTrue_...
bool ReadFlyDsl(const std::string& name, GemmKernel* k) {
  int g = 0, m = 0, n = 0, depth = 0, split = 1, wm = 1, wn = 1, wk = 1, stages = 0, a = 0, b = 0, c = 0, d = 0;
  if (Scan(name, "flydsl_gemm", "flydsl_gemm%d", &g) == 1 && Scan(name, "_t", "_t%dx%dx%d", &m, &n, &depth) == 3) {
    k->extra[kGeneration] = Generation(fmt::format("flydsl_gemm{}", std::clamp(g, 1, 8)).c_str());
    Scan(name, "split_k", "split_k%d", &split);
    Scan(name, "block_m_warp", "block_m_warp%d", &wm);
    Scan(name, "block_n_warp", "block_n_warp%d", &wn);
    Scan(name, "block_k_warp", "block_k_warp%d", &wk);
    SetVariant(Has(name, "b_to_ldsTrue") ? 1 : 0, Has(name, "c_to_ldsTrue") ? 1 : 0, k);
  } else if (Scan(name, "flydsl_hgemm", "flydsl_hgemm%*[^t]t%dx%dx%dx%d_ks%d_w%dx%dx%d", &m, &n, &depth, &stages, &split,
                  &wm, &wn, &wk) >= 5) {
    k->extra[kGeneration] = Generation("flydsl_hgemm");
    k->stages = static_cast<int16_t>(stages);
    SetVariant(Has(name, "_gm0") ? 0 : 1, Has(name, "_pft") ? 1 : 0, k);
  } else if (Scan(name, "hgemm_bf16_", "hgemm_bf16_%dx%dx%d_S%dTN_SPK%d", &m, &n, &depth, &stages, &split) >= 3) {
    k->extra[kGeneration] = Generation("hgemm_old");
    k->stages = static_cast<int16_t>(stages);
    wm = 4;
  } else if (Scan(name, "flydsl_mxpsh_", "flydsl_mxpsh_%dx%dx%d", &m, &n, &depth) == 3) {
    split = 0;
    Scan(name, "_sk", "_sk%d", &split);
    k->extra[kGeneration] = Generation(split > 0 ? "flydsl_mx_split" : "flydsl_mx");
    Scan(name, "B16_w", "B16_w%d_x%d", &a, &b);
    SetVariant(a, b, k);
    wm = 4;
  } else if (Scan(name, "flydsl_bpreshuflle_", "flydsl_bpreshuflle_%dx%dx%d", &m, &n, &depth) == 3) {
    const int digits = Scan(name, "_B16_", "_B16_%dx%dx%dx%dx%d", &a, &b, &c, &d, &stages);
    k->extra[kGeneration] =
        Generation(Has(name, "_xcd") ? "flydsl_preshuffle_xcd" : digits >= 5 ? "flydsl_preshuffle_5" : "flydsl_preshuffle");
    k->stages = static_cast<int16_t>(a);
    SetVariant(b * 10 + c, d, k);
    wm = 4;
  } else {
    return false;
  }
  SetTile(m, n, depth, k);
  SetSplit(split, k);
  SetWaves(wm * wn * wk, k);
  k->extra[kWaveRows] = static_cast<int16_t>(wm);
  return true;
}

// a8w8_[blockscale_][bpreshuffle_][1x128x128_]256x64x128x128_16x16_..._intrawave_v1 and the "cktile" ones, which read
// ..._cktile_0x0x8x4x1x0x0x0x0x2_16x64x512_1x4x1_16x16x128_default or ..._cktile_192x256x128_4x2x1_16x16x128_..._2.
bool ReadCk(const std::string& name, int split, GemmKernel* k) {
  int t = 0, m = 0, n = 0, depth = 0, im = 0, in = 0, wm = 1, wn = 4, v = 0, ik = 0;
  if (!Has(name, "a8w8")) return false;
  const bool blocks = Has(name, "blockscale");
  if (Has(name, "cktile_0x")) {
    if (Scan(name, "cktile_0x", "cktile_%*[0-9x]_%dx%dx%d_%dx%dx%*d_%dx%dx%d", &m, &n, &depth, &wm, &wn, &im, &in, &ik) < 5) {
      return false;
    }
    k->extra[kGeneration] = Generation(ik >= 128 ? "cktile_128" : "cktile");
    const size_t end = name.find('_', name.find("cktile_0x") + 7);
    SetVariant(name[end - 1] - '0', 0, k);
  } else if (Has(name, "cktile_")) {
    if (Scan(name, "cktile_", "cktile_%dx%dx%d_%dx%dx%*d_%dx%dx%d", &m, &n, &depth, &wm, &wn, &im, &in, &ik) < 5) return false;
    k->extra[kGeneration] = Generation("cktile_block");
    SetVariant(name.back() - '0', 0, k);
    SetSplit(1 << std::clamp(split, 0, 6), k);
  } else {
    const char* anchor = Has(name, "1x128x128_") ? "1x128x128_" : "bpreshuffle_";
    const std::string format = std::string(anchor) + "%dx%dx%dx%d_%dx%d";
    if (Scan(name, anchor, format.c_str(), &t, &m, &n, &depth, &im, &in) < 5) return false;
    Scan(name, "wave_v", "wave_v%d", &v);
    k->extra[kGeneration] = Generation(
        fmt::format("ck_{}_v{}", blocks ? (Has(name, "bpreshuffle") ? "block_preshuffle" : "block") : "token", v).c_str());
    SetVariant(im, Has(name, "1x2_intra") ? 2 : 1, k);
    SetSplit(blocks ? 1 << std::clamp(split, 0, 6) : 1, k);
    wm = 1;
    wn = t / 64;
  }
  SetTile(m, n, depth, k);
  SetWaves(wm * wn, k);
  k->extra[kWaveRows] = static_cast<int16_t>(wm);
  k->instruction_m = static_cast<int16_t>(im);
  k->instruction_n = static_cast<int16_t>(in);
  return true;
}

bool ReadOthers(std::string_view library, const std::string& name, int split, GemmKernel* k) {
  int m = 0, n = 0, depth = 0, threads = 256, a = 0, b = 0;
  if (name.rfind("Cijk", 0) == 0 || name.rfind("Custom_Cijk", 0) == 0) {
    if (Scan(name, "_MT", "_MT%dx%dx%d", &n, &m, &depth) != 3) return false;
    k->extra[kGeneration] = Generation("hipblaslt");
    int rows = 64, columns = 4;
    Scan(name, "_WG", "_WG%d_%d_%d", &rows, &columns, &a);
    Scan(name, "_SK", "_SK%d", &b);
    threads = rows * columns * std::max(1, a);
    int parts = 1;
    Scan(name, "_GSU", "_GSU%d_", &parts);
    SetVariant(a, b, k);
    SetSplit(b > 0 ? 1 : parts, k);
    k->stream_k = static_cast<int8_t>(std::clamp(b, 0, 127));
  } else if (Has(name, "opus_gemm")) {
    const size_t tile = name.find_first_of("0123456789");
    if (tile == std::string::npos ||
        std::sscanf(name.c_str() + tile, "%dx%dx%dx%d_%dx%d", &threads, &m, &n, &depth, &a, &b) < 4) {
      return false;
    }
    k->extra[kGeneration] = Generation(Has(name, "split") ? "opus_split" : "opus");
    SetVariant(a, b, k);
    SetSplit(split, k);
  } else if (library == "asm" || Has(name, "5aiter")) {
    // ..._64x64_splitk_cleanE, ..._192x128E: the first "<digits>x<digits>" after an underscore.
    for (size_t at = name.find('_'); at != std::string::npos && m == 0; at = name.find('_', at + 1)) {
      if (std::sscanf(name.c_str() + at, "_%dx%d", &m, &n) != 2) m = 0;
    }
    if (m == 0) return false;
    k->extra[kGeneration] = Generation(Has(name, "split") || split > 1 ? "asm_split" : "asm");
    SetVariant(Has(name, "clean") ? 1 : 0, 0, k);
    depth = Has(name, "fp32bf16") || Has(name, "bf16gemm_bf16") ? 64 : 128;
    SetSplit(split, k);
    k->hand_scheduled = 1;
  } else {
    const char* known = library == "torch" ? "torch" : library == "triton" ? "triton" : library == "skinny" ? "skinny" : "other";
    k->extra[kGeneration] = Generation(known);
    if (library == "skinny") m = 16, n = 64, depth = 64;
    SetSplit(split, k);
  }
  SetTile(m, n, depth, k);
  SetWaves(std::max(1, threads / 64), k);
  return true;
}

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
constexpr int kTypicalTile = 128;         // stands for a tile that the library picks
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
    ForEachKey(kernel, [&](const std::string& key, bool sloped) {
      keys.push_back(key);
      if (sloped) {
        for (const char* slope : {":depth", ":fill", ":traffic"}) keys.push_back(key + slope);
      }
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
    if (code.chosen_by_library) return LibraryTerms(problem, p, code, regime);
    if (!code.stream_k) return EvaluateTile(p, code.tile, device_, regime);
    return EvaluateTile(p, StreamK(p, code.tile), device_, regime);
  }

  TileKernel StreamK(const TileProblem& p, TileKernel kernel) const {
    const double tiles = std::ceil(p.m * kernel.inv_tile_m) * std::ceil(p.n * kernel.inv_tile_n) * p.batch;
    const double units = std::max(1.0, std::floor(kernel.units * p.usable_share));
    if (tiles < units) {
      kernel.split = StreamKGrid(tiles, std::ceil(p.k * kernel.inv_step_k), units) / tiles;
      kernel.inv_split = 1.0 / kernel.split;
    }
    return kernel;
  }

  // The best kernel that a library has (cost/gemm.h), times the factor of the code path.
  KernelTerms LibraryTerms(const GemmProblem& problem, const TileProblem& p, const Code& code, KernelRegime* regime) const {
    KernelRegime where;
    EvaluateTile(p, code.tile, device_, &where);
    if (regime != nullptr) *regime = where;
    const Estimate best = GemmEstimate(ShapeOf(problem), device_.accelerator, problem.inputs);
    const TileKernel& k = code.tile;
    const double factor =
        std::exp(k.factor[0] + k.by_depth * where.depth + k.by_fill * where.fill + k.by_traffic * where.traffic);
    KernelTerms t;
    t.launch = best.launch.value;
    t.matrix = best.compute.value;
    t.hbm = best.memory.value;
    t.main_loop = std::max(0.0, best.total.value - best.launch.value);
    t.total = best.total.value * factor;
    t.residual = t.total - best.total.value;
    return t;
  }

  template <typename Use>
  static void ForEachKey(const GemmKernel& k, const Use& use) {
    const int generation = k.extra[kGeneration] < 0 ? kOther : k.extra[kGeneration];
    const char* name = kGenerations[static_cast<size_t>(std::min(generation, kOther))];
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
    if (code.chosen_by_library) SetTile(kTypicalTile, kTypicalTile, 0, &described);
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
    TileKernel r;
    r.tile_class = split ? 1 : 0;
    r.tile_m = bm;
    r.tile_n = bn;
    r.step_k = bk;
    r.split = std::max<int>(1, k.split_k);
    r.inv_tile_m = 1.0 / bm;
    r.inv_tile_n = 1.0 / bn;
    r.inv_step_k = 1.0 / bk;
    r.inv_split = 1.0 / r.split;
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
    for (const GemmKernel& kernel : kernels) ready_.push_back(model.Ready(kernel));
  }
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    const TileProblem p = DescribeTileProblem(problem, model_.device_, model_.classes_);
    const bool fits = model_.Fits(problem);
    for (size_t i = 0; i < ready_.size(); ++i) {
      const AiterModel::Code& code = ready_[i];
      if (!fits) {
        seconds[i] = std::numeric_limits<double>::infinity();
      } else if (code.chosen_by_library) {
        seconds[i] = model_.LibraryTerms(problem, p, code, nullptr).total;
      } else {
        seconds[i] = EvaluateTileTotal(p, code.stream_k ? model_.StreamK(p, code.tile) : code.tile, model_.device_);
      }
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override { return model_.Terms(problem, ready_[i], nullptr); }

 private:
  const AiterModel& model_;
  std::vector<AiterModel::Code> ready_;
};

std::unique_ptr<KernelScorer> AiterModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<AiterScorer>(*this, kernels);
}

std::unique_ptr<FamilyModel> MakeAiter(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<AiterModel>(accelerator, constants);
}

void ReadAiter(CsvRow& row, GemmKernel* kernel) {
  const std::string quant = row.Text("quant", "none");
  kernel->extra[kScales] = static_cast<int16_t>(quant == "token" ? 1 : quant == "block128" ? 2 : quant == "mx32" ? 3 : 0);
  const std::string shuffled = row.Text("bpreshuffle", "False");
  kernel->extra[kPreshuffled] = shuffled == "True" || shuffled == "1" ? 1 : 0;
  const std::string name = row.Text("kernel", "");
  const auto size = [&](const char* column) { return static_cast<int>(row.Integer(column, {0, 32767}, 0)); };
  SetTile(size("mt_m"), size("mt_n"), size("mt_k"), kernel);
  AiterKernelFromName(row.Text("lib", ""), name, static_cast<int>(row.Integer("split_k", {0, 4096}, 0)), kernel);
}

}  // namespace

std::span<const char* const> AiterGenerations() { return kGenerations; }

void AiterKernelFromName(std::string_view library, const std::string& name, int split, GemmKernel* kernel) {
  kernel->extra[kGeneration] = kOther;
  if (kernel->split_k < 1) kernel->split_k = 1;
  if (ReadFlyDsl(name, kernel) || ReadCk(name, split, kernel)) return;
  ReadOthers(library, name, split, kernel);
}

const FamilyEntry kAiterFamily = {KernelFamily::kAiter, kSpecs, MakeAiter, "lib", ReadAiter};

}  // namespace portolan
