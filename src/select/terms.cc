#include "select/terms.h"

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

// An element-wise kernel of 64 KiB in a CUDA graph on one H200, start to start (data/measured/h200/memory.json,
// 2026-11-30): shorter than the shortest product.
constexpr double kStreamingKernelSeconds = 1.2e-6;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void SumTerms(KernelTerms* terms, double exponent) {
  KernelTerms& t = *terms;
  const double parts[] = {t.matrix, t.lds, t.l2, t.mall, t.hbm, t.latency};
  const double longest = *std::max_element(std::begin(parts), std::end(parts));
  t.main_loop = longest;
  if (exponent > 0.0 && longest > 0.0) {
    double sum = 0.0;
    for (const double part : parts) sum += std::pow(part / longest, exponent);
    t.main_loop = longest * std::pow(sum, 1.0 / exponent);
  }
  t.total = t.launch + t.prologue + t.main_loop + t.wave_quantisation + t.epilogue + t.split_reduction + t.clearing +
            t.clock + t.residual;
}

Estimate EstimateOf(const KernelTerms& terms) {
  const double compute = terms.matrix + terms.lds;
  const double memory = terms.l2 + terms.mall + terms.hbm;
  const double overlapped = compute + memory + terms.latency;
  const double spread = terms.total - terms.launch - terms.split_reduction - terms.clearing;
  const double share = overlapped > 0.0 ? spread / overlapped : 0.0;
  Estimate estimate;
  estimate.launch = Seconds(terms.launch);
  estimate.compute = Seconds((compute + terms.latency) * share);
  estimate.memory = Seconds(memory * share + terms.split_reduction + terms.clearing);
  estimate.total = Seconds(terms.total);
  return estimate;
}

double TileCount(const GemmProblem& problem, const GemmKernel& kernel) {
  const int64_t tile_m = std::max<int64_t>(1, kernel.tile_m), tile_n = std::max<int64_t>(1, kernel.tile_n);
  int64_t rows = 0;
  if (problem.group_m != nullptr) {
    for (int i = 0; i < problem.groups; ++i) rows += CeilDivide(problem.group_m[i], tile_m);
  } else {
    const int64_t groups = std::max<int64_t>(1, problem.groups);
    rows = groups * CeilDivide(CeilDivide(problem.m, groups), tile_m);
  }
  return static_cast<double>(rows) * static_cast<double>(CeilDivide(problem.n, tile_n)) *
         static_cast<double>(std::max<int64_t>(1, problem.batch));
}

double ClearAndConvertSeconds(const GemmProblem& problem, const Accelerator& accelerator) {
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                          static_cast<double>(std::max<int64_t>(1, problem.batch));
  const double buffer = 4.0 * elements;
  const double hbm = accelerator.hbm_sustained.value;
  const double read_rate = buffer < 0.5 * accelerator.l2.value ? std::max(hbm, accelerator.l2_rate.value) : hbm;
  return 2.0 * kStreamingKernelSeconds + buffer / hbm + buffer / read_rate + elements * SizeOf(problem.d).value / hbm;
}

}  // namespace portolan
