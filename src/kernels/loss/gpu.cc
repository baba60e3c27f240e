#include "kernels/gpu_kernels.h"
#include "kernels/loss/loss.h"
#include "kernels/visit_columns.h"

namespace portolan::kernels::PORTOLAN_BACKEND {
namespace {

constexpr int64_t kSamplesPerBlock = 1024;

// log(1 + e) for e in [0, 1]: e log(u) / (u - 1) with u = 1 + e as rounded is exact to a few ulp where log1p is missing
// (Goldberg, ACM Computing Surveys 23(1), 1991, theorem 4).
PORTOLAN_DEVICE float Log1p(float e) {
  const float u = 1.0f + e;
  return u == 1.0f ? e : e * Log(u) / (u - 1.0f);
}

struct Bce {
  static constexpr const char* kName = "bce_with_logits";
  static constexpr int kThreads = 256;
  struct Shared {
    BlockSumScratch<double, kThreads> scratch;
  };
  int64_t batch;
  const float* logits;  // [batch], `stride` apart
  int64_t stride;
  const float* labels;   // [batch]
  const float* weights;  // [batch] or null
  float gradient_scale;
  float* dlogits;   // [batch], `stride` apart, or null
  double* partial;  // [blocks]

  PORTOLAN_DEVICE void operator()(Shared& shared) const {
    double sum = 0;
    const int64_t first = BlockIndex() * kSamplesPerBlock;
    const int64_t end = first + kSamplesPerBlock < batch ? first + kSamplesPerBlock : batch;
    for (int64_t i = first + ThreadIndex(); i < end; i += kThreads) {
      const float z = logits[i * stride];
      const float weight = weights != nullptr ? weights[i] : 1.0f;
      const float small = Exp(z < 0 ? z : -z);  // exp(-|z|)
      sum += weight * ((z > 0 ? z : 0.0f) - z * labels[i] + Log1p(small));
      if (dlogits != nullptr) {
        const float sigmoid = (z < 0 ? small : 1.0f) / (1.0f + small);
        dlogits[i * stride] = gradient_scale * weight * (sigmoid - labels[i]);
      }
    }
    sum = BlockSum(sum, shared.scratch);
    if (ThreadIndex() == 0) partial[BlockIndex()] = sum;
  }
};

}  // namespace

double BceWithLogits(int64_t batch, const float* logits, int64_t stride, const float* labels, const float* weights,
                     float gradient_scale, float* dlogits, device::Stream stream) {
  const int64_t blocks = CeilDivide(batch, kSamplesPerBlock);
  Scratch<double> partial(stream, blocks);
  Launch(stream, blocks, Bce{batch, logits, stride, labels, weights, gradient_scale, dlogits, partial.data()});
  return SumOnHost(stream, partial.data(), blocks);
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
