#include "base/check.h"
#include "plan/timeline.h"

namespace portolan {

double StepConstants::Factor(Category category, Fusion fusion) const {
  switch (category) {
    case Category::kGemm:
      return gemm;
    case Category::kAttention:
      return attention;
    case Category::kElementwise:
      return fusion == Fusion::kFull ? pointwise_full : fusion == Fusion::kEager ? pointwise_eager : pointwise_compiled;
    case Category::kEmbeddingForward:
    case Category::kEmbeddingBackward:
      return embedding;
    case Category::kOptimizer:
      return optimizer;
    case Category::kSparseExchange:
    case Category::kDenseCollective:
      return communication;
    case Category::kHostCopy:
      return 1.0;
  }
  PORTOLAN_CHECK(false, "category without a factor");
}

// Fitted 2026-11-30 by tools/fit_step_constants to the seven entries of data/validation marked `use: fit` (DCNv2 on
// A100, H100 and B200, OneTrans on B200 and MI355X, DLRMv4 on MI350X), each held near a micro-benchmark's prior
// (fit_constants.cc). Leaving out any chip moves its own steps by less than 7 points; fit_constants_test.cc repeats it.
StepConstants SharedStepConstants() {
  StepConstants constants;
  constants.gemm = 1.07;
  constants.attention = 1.06;
  constants.pointwise_full = 1.13;
  constants.pointwise_compiled = 1.85;
  constants.pointwise_eager = 2.2;  // not fitted: TraceLens of Primus-DLRM's eager OneTrans_v6, 2.9 to 3.2 TB/s, MI355X
  constants.embedding = 1.20;
  constants.optimizer = 1.01;
  constants.communication = 1.18;
  constants.step_overhead = Seconds(97e-6);
  // Assumed: a kernel beside another uses what it leaves free.
  constants.concurrency_gain = 0.2;
  // Assumed: dispatcher, autograd and allocator of an eager framework cost two more launches a kernel.
  constants.host_kernel_eager = 3;
  constants.host_kernel_compiled = 1.5;
  // Not fitted: TorchRec's DLRM on 8 x A100 does 284,615 samples/s at a global batch of 2,048 (facebookresearch/dlrm,
  // earlier torchrec_dlrm README): 7.2 ms a step whose kernels take about one. Eager research code takes 15 to 20
  // (AMD-AGI/Primus-DLRM doc/log.md, counter_v1).
  constants.framework_step = Seconds(6e-3);
  return constants;
}

}  // namespace portolan
