#pragma once

// cuFFT by the definition: a mixed-radix transform in double precision, a direct sum for prime lengths.

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "cuComplex.h"

enum cufftResult {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_INVALID_SIZE = 8
};
typedef cufftResult cufftResult_t;
enum cufftType {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
};
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuFloatComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

namespace portolan::gpu {

using Wide = std::complex<double>;

struct FftPlan {
  std::vector<int> size;  // slowest first
  int batch = 1;
  int in_stride = 1, out_stride = 1;
  int in_distance = 0, out_distance = 0;  // 0: behind each other
  std::vector<int> in_embed, out_embed;   // empty: without gaps
};

// In place, the n elements at data[0], data[step] ...
inline void Transform(std::vector<Wide>& data, int sign) {
  const size_t n = data.size();
  if (n < 2) return;
  size_t radix = 2;
  while (radix * radix <= n && n % radix != 0) ++radix;
  if (n % radix != 0) radix = n;
  const double angle = sign * 2 * std::numbers::pi / static_cast<double>(n);
  std::vector<Wide> turn(n);
  for (size_t i = 0; i < n; ++i) turn[i] = std::polar(1.0, angle * static_cast<double>(i));
  const size_t m = n / radix;
  std::vector<std::vector<Wide>> parts(radix, std::vector<Wide>(m));
  for (size_t i = 0; i < n; ++i) parts[i % radix][i / radix] = data[i];
  if (m > 1) {
    for (std::vector<Wide>& part : parts) Transform(part, sign);
  }
  for (size_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (size_t r = 0; r < radix; ++r) sum += parts[r][k % m] * turn[r * k % n];
    data[k] = sum;
  }
}

inline void TransformAll(std::vector<Wide>& data, const std::vector<int>& size, int sign) {
  size_t step = 1;
  for (size_t d = size.size(); d-- > 0;) {
    const auto n = static_cast<size_t>(size[d]);
    std::vector<Wide> line(n);
    for (size_t start = 0; start < data.size(); ++start) {
      if (start / step % n != 0) continue;
      for (size_t i = 0; i < n; ++i) line[i] = data[start + i * step];
      Transform(line, sign);
      for (size_t i = 0; i < n; ++i) data[start + i * step] = line[i];
    }
    step *= n;
  }
}

// use(index in the whole transform, offset in memory) for all elements, the last dimension cut to `last`.
template <typename F>
void ForElements(const std::vector<int>& size, int last, const std::vector<int>& embed, int stride, F use) {
  size_t total = 1;
  for (int n : size) total *= static_cast<size_t>(n);
  const auto width = static_cast<size_t>(size.back());
  for (size_t i = 0; i < total; ++i) {
    if (i % width >= static_cast<size_t>(last)) continue;
    size_t rest = i, offset = 0, step = 1;
    for (size_t d = size.size(); d-- > 0;) {
      offset += rest % static_cast<size_t>(size[d]) * step;
      rest /= static_cast<size_t>(size[d]);
      step *= static_cast<size_t>(embed.empty() ? (d + 1 == size.size() ? last : size[d]) : embed[d]);
    }
    use(i, offset * static_cast<size_t>(stride));
  }
}

template <typename In, typename Out>
cufftResult Execute(const FftPlan& plan, const In* in, Out* out, int sign) {
  constexpr bool kFromReal = !std::is_class_v<In>;
  constexpr bool kToReal = !std::is_class_v<Out>;
  size_t total = 1;
  for (int n : plan.size) total *= static_cast<size_t>(n);
  const int half = plan.size.back() / 2 + 1;
  const int in_last = kToReal ? half : plan.size.back();
  const int out_last = kFromReal ? half : plan.size.back();
  const auto distance = [&](int given, int last) {
    return given != 0 ? static_cast<size_t>(given)
                      : total / static_cast<size_t>(plan.size.back()) * static_cast<size_t>(last);
  };
  for (int b = 0; b < plan.batch; ++b) {
    std::vector<Wide> data(total);
    const In* from = in + static_cast<size_t>(b) * distance(plan.in_distance, in_last);
    Out* to = out + static_cast<size_t>(b) * distance(plan.out_distance, out_last);
    ForElements(plan.size, in_last, plan.in_embed, plan.in_stride, [&](size_t i, size_t at) {
      if constexpr (kFromReal) {
        data[i] = from[at];
      } else {
        data[i] = Wide(from[at].x, from[at].y);
      }
      if constexpr (kToReal) {
        // The other half is its mirror's conjugate.
        size_t rest = i, mirror = 0, step = 1;
        for (size_t d = plan.size.size(); d-- > 0;) {
          const auto n = static_cast<size_t>(plan.size[d]);
          mirror += (n - rest % n) % n * step;
          rest /= n;
          step *= n;
        }
        if (mirror % static_cast<size_t>(plan.size.back()) >= static_cast<size_t>(half))
          data[mirror] = std::conj(data[i]);
      }
    });
    TransformAll(data, plan.size, sign);
    ForElements(plan.size, out_last, plan.out_embed, plan.out_stride, [&](size_t i, size_t at) {
      if constexpr (kToReal) {
        to[at] = static_cast<Out>(data[i].real());
      } else {
        to[at].x = static_cast<decltype(to[at].x)>(data[i].real());
        to[at].y = static_cast<decltype(to[at].y)>(data[i].imag());
      }
    });
  }
  return CUFFT_SUCCESS;
}

}  // namespace portolan::gpu

typedef portolan::gpu::FftPlan* cufftHandle;
inline cufftResult cufftPlan1d(cufftHandle* plan, int n, cufftType, int batch) {
  return *plan = new portolan::gpu::FftPlan{{n}, batch}, CUFFT_SUCCESS;
}
inline cufftResult cufftPlan2d(cufftHandle* plan, int n, int m, cufftType) {
  return *plan = new portolan::gpu::FftPlan{{n, m}}, CUFFT_SUCCESS;
}
inline cufftResult cufftPlan3d(cufftHandle* plan, int n, int m, int k, cufftType) {
  return *plan = new portolan::gpu::FftPlan{{n, m, k}}, CUFFT_SUCCESS;
}
inline cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* in_embed, int in_stride, int in_distance,
                                 int* out_embed, int out_stride, int out_distance, cufftType, int batch) {
  auto* made = new portolan::gpu::FftPlan{{n, n + rank}, batch};
  if (in_embed != nullptr) {
    made->in_stride = in_stride, made->in_distance = in_distance;
    made->in_embed.assign(in_embed, in_embed + rank);
  }
  if (out_embed != nullptr) {
    made->out_stride = out_stride, made->out_distance = out_distance;
    made->out_embed.assign(out_embed, out_embed + rank);
  }
  return *plan = made, CUFFT_SUCCESS;
}
inline cufftResult cufftDestroy(cufftHandle plan) { return delete plan, CUFFT_SUCCESS; }
inline cufftResult cufftSetStream(cufftHandle, cudaStream_t) { return CUFFT_SUCCESS; }
inline cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int sign) {
  return portolan::gpu::Execute(*plan, in, out, sign);
}
inline cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int sign) {
  return portolan::gpu::Execute(*plan, in, out, sign);
}
inline cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out) {
  return portolan::gpu::Execute(*plan, in, out, CUFFT_FORWARD);
}
inline cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return portolan::gpu::Execute(*plan, in, out, CUFFT_FORWARD);
}
inline cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out) {
  return portolan::gpu::Execute(*plan, in, out, CUFFT_INVERSE);
}
inline cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return portolan::gpu::Execute(*plan, in, out, CUFFT_INVERSE);
}
