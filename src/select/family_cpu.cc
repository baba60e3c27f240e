#include "select/family_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost/gemm_tiles.h"

namespace portolan {
namespace {

enum CpuKnob { kThreads, kPacked, kBatchSplit };
enum Constant { kForkSeconds, kMatrixShare, kSaturation, kConstantCount };

constexpr std::array<ConstantSpec, kConstantCount> kSpecs = {{
    {"fork_s", 1e-6, 1e-7, 2e-5, "s: a fork and join of a thread pool, for each doubling of the threads"},
    {"matrix_share", 0.9, 0.1, 1.2, "of the sustained matrix rate of a core"},
    {"saturation", 0.25, 0.02, 1.0, "share of the cores that saturates the memory"},
}};

constexpr double kBlockRows = 32.0, kBlockColumns = 64.0;  // register blocking of AMX and AVX-512 kernels, assumed

class CpuModel : public FamilyModel {
 public:
  CpuModel(const Accelerator& accelerator, const FamilyConstants& constants)
      : compute_(constants.compute),
        cores_(std::max(1, accelerator.compute_units)),
        core_rate_(std::max(1.0, GemmRate(compute_, accelerator).value / cores_)),
        bandwidth_(std::max(1.0, accelerator.hbm_sustained.value)),
        cache_(accelerator.l2.value) {
    std::copy_n(constants.values.begin(), kConstantCount, c_.begin());
  }

  bool Supports(const GemmProblem& problem, const GemmKernel& kernel) const override {
    const bool lowered = problem.compute == DType::kFp32 && kernel.compute == DType::kBf16;
    return kernel.compute == compute_ && (problem.compute == compute_ || lowered) && problem.groups <= 1;
  }

  KernelTerms Score(const GemmProblem& p, const GemmKernel& kernel) const override {
    const double usable = p.usable_units > 0 ? std::min<double>(cores_, p.usable_units) : cores_;
    const double threads = kernel.extra[kThreads] > 0 ? std::min<double>(kernel.extra[kThreads], usable) : usable;
    const double parts = std::clamp<double>(kernel.extra[kBatchSplit], 1.0, threads);
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const auto batch = static_cast<double>(std::max<int64_t>(1, p.batch));
    const double blocks = std::ceil(std::ceil(m / parts) / kBlockRows) * std::ceil(n / kBlockColumns) * batch;
    const double rounds = std::ceil(blocks / std::max(1.0, std::floor(threads / parts)));
    const double bandwidth = bandwidth_ * std::min(1.0, threads / (c_[kSaturation] * cores_));
    const double a = batch * m * k * SizeOf(p.a).value, b = batch * n * k * SizeOf(compute_).value;
    const double d = batch * m * n * SizeOf(p.d).value * OutputPasses(p);
    KernelTerms t;
    t.launch = c_[kForkSeconds] * std::log2(2.0 * threads);
    t.matrix = rounds * 2.0 * kBlockRows * kBlockColumns * k / (c_[kMatrixShare] * core_rate_);
    t.hbm = (a + (b > cache_ ? parts : 1.0) * b + d) / bandwidth;
    if (kernel.extra[kPacked] != 1)
      t.prologue += batch * n * k * (SizeOf(p.b).value + SizeOf(compute_).value) / bandwidth;
    if (p.compute != compute_) t.prologue += (a + batch * m * k * SizeOf(compute_).value) / bandwidth;
    SumTerms(&t, 0.0);
    return t;
  }

 private:
  DType compute_;
  double cores_, core_rate_, bandwidth_, cache_;
  std::array<double, kConstantCount> c_{};
};

std::unique_ptr<FamilyModel> MakeCpu(const Accelerator& accelerator, const FamilyConstants& constants) {
  return std::make_unique<CpuModel>(accelerator, constants);
}

void ReadCpu(CsvRow& row, GemmKernel* kernel) {
  kernel->extra[kThreads] = static_cast<int16_t>(row.Integer("cpu_threads", {0, 4096}));
  kernel->extra[kPacked] = static_cast<int16_t>(row.Integer("packed", {0, 1}, 0));
  kernel->extra[kBatchSplit] = static_cast<int16_t>(row.Integer("batch_split", {1, 4096}, 1));
}

}  // namespace

const FamilyEntry kCpuFamily = {KernelFamily::kCpu, kSpecs, MakeCpu, "cpu_threads", ReadCpu};

}  // namespace portolan
