#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "select/family_aiter.h"

namespace portolan {
namespace {

constexpr std::array<const char*, 34> kGenerations = {"flydsl_gemm1",
                                                      "flydsl_gemm2",
                                                      "flydsl_gemm3",
                                                      "flydsl_gemm4",
                                                      "flydsl_gemm5",
                                                      "flydsl_gemm6",
                                                      "flydsl_gemm7",
                                                      "flydsl_gemm8",
                                                      "flydsl_hgemm",
                                                      "hgemm_old",
                                                      "flydsl_mx",
                                                      "flydsl_mx_split",
                                                      "flydsl_preshuffle",
                                                      "flydsl_preshuffle_5",
                                                      "flydsl_preshuffle_xcd",
                                                      "ck_token_v1",
                                                      "ck_token_v2",
                                                      "ck_token_v3",
                                                      "ck_block_v1",
                                                      "ck_block_v3",
                                                      "ck_block_preshuffle_v1",
                                                      "ck_block_preshuffle_v3",
                                                      "cktile",
                                                      "cktile_128",
                                                      "cktile_block",
                                                      "asm",
                                                      "asm_split",
                                                      "opus",
                                                      "opus_split",
                                                      "hipblaslt",
                                                      "torch",
                                                      "triton",
                                                      "skinny",
                                                      "other"};
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
  } else if (Scan(name, "flydsl_hgemm", "flydsl_hgemm%*[^t]t%dx%dx%dx%d_ks%d_w%dx%dx%d", &m, &n, &depth, &stages,
                  &split, &wm, &wn, &wk) >= 5) {
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
    k->extra[kGeneration] = Generation(Has(name, "_xcd") ? "flydsl_preshuffle_xcd"
                                       : digits >= 5     ? "flydsl_preshuffle_5"
                                                         : "flydsl_preshuffle");
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
    if (Scan(name, "cktile_0x", "cktile_%*[0-9x]_%dx%dx%d_%dx%dx%*d_%dx%dx%d", &m, &n, &depth, &wm, &wn, &im, &in,
             &ik) < 5) {
      return false;
    }
    k->extra[kGeneration] = Generation(ik >= 128 ? "cktile_128" : "cktile");
    const size_t end = name.find('_', name.find("cktile_0x") + 7);
    SetVariant(name[end - 1] - '0', 0, k);
  } else if (Has(name, "cktile_")) {
    if (Scan(name, "cktile_", "cktile_%dx%dx%d_%dx%dx%*d_%dx%dx%d", &m, &n, &depth, &wm, &wn, &im, &in, &ik) < 5)
      return false;
    k->extra[kGeneration] = Generation("cktile_block");
    SetVariant(name.back() - '0', 0, k);
    SetSplit(1 << std::clamp(split, 0, 6), k);
  } else {
    const char* anchor = Has(name, "1x128x128_") ? "1x128x128_" : "bpreshuffle_";
    const std::string format = std::string(anchor) + "%dx%dx%dx%d_%dx%d";
    if (Scan(name, anchor, format.c_str(), &t, &m, &n, &depth, &im, &in) < 5) return false;
    Scan(name, "wave_v", "wave_v%d", &v);
    k->extra[kGeneration] = Generation(
        fmt::format("ck_{}_v{}", blocks ? (Has(name, "bpreshuffle") ? "block_preshuffle" : "block") : "token", v)
            .c_str());
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
    const char* known = library == "torch"    ? "torch"
                        : library == "triton" ? "triton"
                        : library == "skinny" ? "skinny"
                                              : "other";
    k->extra[kGeneration] = Generation(known);
    if (library == "skinny") m = 16, n = 64, depth = 64;
    SetSplit(split, k);
  }
  SetTile(m, n, depth, k);
  SetWaves(std::max(1, threads / 64), k);
  return true;
}

}  // namespace

std::span<const char* const> AiterGenerations() { return kGenerations; }

void AiterKernelFromName(std::string_view library, const std::string& name, int split, GemmKernel* kernel) {
  kernel->extra[kGeneration] = kOther;
  if (kernel->split_k < 1) kernel->split_k = 1;
  if (ReadFlyDsl(name, kernel) || ReadCk(name, split, kernel)) return;
  ReadOthers(library, name, split, kernel);
}

}  // namespace portolan
