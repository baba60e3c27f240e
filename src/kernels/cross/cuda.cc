#include "kernels/cross/cross.h"
#include "kernels/cuda_rows.h"

namespace portolan::kernels::cuda {
namespace {

template <int kWidth, typename T>
struct ForwardBody {
  static constexpr int kSums = 0;
  Rows<const T> x0, u;
  const float* bias;
  Rows<const T> x;
  Rows<T> y;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>*) const {
    const auto a = LoadNumbers<kWidth>(x0.data + row * x0.stride + column);
    const auto b = LoadNumbers<kWidth>(u.data + row * u.stride + column);
    const auto biases = LoadNumbers<kWidth>(bias + column);
    auto c = a;
    if (x.data != x0.data) c = LoadNumbers<kWidth>(x.data + row * x.stride + column);
    for (int k = 0; k < kWidth; ++k) c.value[k] += a.value[k] * (b.value[k] + biases.value[k]);
    StoreNumbers(c, y.data + row * y.stride + column);
  }
};

template <int kWidth, typename T>
struct BackwardBody {
  static constexpr int kSums = 1;
  Rows<const T> x0, u;
  const float* bias;
  Rows<const T> dy;
  Rows<T> du, dx0;
  Assign assign;
  float residual;  // 1: dx0 takes dy too
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>* sums) const {
    const auto a = LoadNumbers<kWidth>(x0.data + row * x0.stride + column);
    const auto b = LoadNumbers<kWidth>(u.data + row * u.stride + column);
    const auto slope = LoadNumbers<kWidth>(dy.data + row * dy.stride + column);
    const auto biases = LoadNumbers<kWidth>(bias + column);
    Numbers<kWidth> own = {}, inner;
    if (assign == Assign::kAdd) own = LoadNumbers<kWidth>(dx0.data + row * dx0.stride + column);
    for (int k = 0; k < kWidth; ++k) {
      inner.value[k] = slope.value[k] * a.value[k];
      own.value[k] += slope.value[k] * (b.value[k] + biases.value[k] + residual);
      sums[0].value[k] += inner.value[k];
    }
    StoreNumbers(inner, du.data + row * du.stride + column);
    StoreNumbers(own, dx0.data + row * dx0.stride + column);
  }
};

template <typename T>
Rows<const T> Const(Rows<T> rows) {
  return {rows.data, rows.stride};
}

}  // namespace

template <typename T>
void CrossForward(int64_t rows, int64_t width, Rows<const T> x0, Rows<const T> u, const float* bias, Rows<const T> x,
                  Rows<T> y, device::Stream stream) {
  if (InEights(width, x0) && InEights(width, u) && InEights(width, x) && InEights(width, Const(y)) && InEights(bias)) {
    LaunchVisit<8>("cross forward", rows, width, ForwardBody<8, T>{x0, u, bias, x, y}, nullptr, stream);
  } else {
    LaunchVisit<1>("cross forward", rows, width, ForwardBody<1, T>{x0, u, bias, x, y}, nullptr, stream);
  }
}

template <typename T>
void CrossBackward(int64_t rows, int64_t width, Rows<const T> x0, Rows<const T> u, const float* bias, Rows<const T> dy,
                   Rows<T> du, Rows<T> dx0, Assign assign, CrossResidual residual, float* dbias, float* partial,
                   device::Stream stream) {
  const float own = residual == CrossResidual::kWithResidual ? 1.0f : 0.0f;
  if (InEights(width, x0) && InEights(width, u) && InEights(width, dy) && InEights(width, Const(du)) &&
      InEights(width, Const(dx0)) && InEights(bias)) {
    LaunchVisit<8>("cross backward", rows, width, BackwardBody<8, T>{x0, u, bias, dy, du, dx0, assign, own}, partial,
                   stream);
  } else {
    LaunchVisit<1>("cross backward", rows, width, BackwardBody<1, T>{x0, u, bias, dy, du, dx0, assign, own}, partial,
                   stream);
  }
  LaunchAddShares<1>(rows, width, partial, {{dbias}}, stream);
}

#define PORTOLAN_FOR(T)                                                                                                \
  template void CrossForward<T>(int64_t, int64_t, Rows<const T>, Rows<const T>, const float*, Rows<const T>, Rows<T>,  \
                                device::Stream);                                                                       \
  template void CrossBackward<T>(int64_t, int64_t, Rows<const T>, Rows<const T>, const float*, Rows<const T>, Rows<T>, \
                                 Rows<T>, Assign, CrossResidual, float*, float*, device::Stream);
PORTOLAN_FOR(float)
PORTOLAN_FOR(Bf16)
#undef PORTOLAN_FOR

}  // namespace portolan::kernels::cuda
