#include "kernels/cuda_rows.h"

namespace portolan::kernels::cuda {
namespace {

__device__ __forceinline__ float SigmoidOf(float x) { return 1.0f / (1.0f + __expf(-x)); }
constexpr float kInverseSqrt2 = 0.70710678f;
constexpr float kInverseSqrt2Pi = 0.39894228f;

__device__ __forceinline__ float ValueOf(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x > 0 ? x : 0.0f;
    case ActivationKind::kSigmoid:
      return SigmoidOf(x);
    case ActivationKind::kSilu:
      return x * SigmoidOf(x);
    case ActivationKind::kGelu:
      return 0.5f * x * (1 + erff(x * kInverseSqrt2));
  }
  return x;
}
__device__ __forceinline__ float SlopeOf(ActivationKind kind, float x, float y) {
  switch (kind) {
    case ActivationKind::kNone:
      return 1;
    case ActivationKind::kRelu:
      return y > 0 ? 1 : 0;
    case ActivationKind::kSigmoid:
      return y * (1 - y);
    case ActivationKind::kSilu:
      return SigmoidOf(x) * (1 + x * (1 - SigmoidOf(x)));
    case ActivationKind::kGelu:
      return 0.5f * (1 + erff(x * kInverseSqrt2)) + x * kInverseSqrt2Pi * __expf(-0.5f * x * x);
  }
  return 1;
}

template <int kWidth, typename T>
struct ForwardBody {
  static constexpr int kSums = 0;
  ActivationKind kind;
  Rows<const T> x;
  const float* bias;
  Rows<T> y;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>*) const {
    auto values = LoadNumbers<kWidth>(x.data + row * x.stride + column);
    if (bias != nullptr) {
      for (int k = 0; k < kWidth; ++k) values.value[k] += bias[column + k];
    }
    for (int k = 0; k < kWidth; ++k) values.value[k] = ValueOf(kind, values.value[k]);
    StoreNumbers(values, y.data + row * y.stride + column);
  }
};

template <int kWidth, typename T>
struct BackwardBody {
  static constexpr int kSums = 1;
  ActivationKind kind;
  Rows<const T> x;
  const float* bias;
  Rows<const T> y, dy;
  Rows<T> dx;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>* sums) const {
    auto slope = LoadNumbers<kWidth>(dy.data + row * dy.stride + column);
    Numbers<kWidth> in = {}, out = {};
    if (kind == ActivationKind::kRelu || kind == ActivationKind::kSigmoid) {
      out = LoadNumbers<kWidth>(y.data + row * y.stride + column);
    } else if (kind != ActivationKind::kNone) {
      in = LoadNumbers<kWidth>(x.data + row * x.stride + column);
      if (bias != nullptr) {
        for (int k = 0; k < kWidth; ++k) in.value[k] += bias[column + k];
      }
    }
    for (int k = 0; k < kWidth; ++k) {
      slope.value[k] *= SlopeOf(kind, in.value[k], out.value[k]);
      sums[0].value[k] += slope.value[k];
    }
    if (kind != ActivationKind::kNone || dx.data != dy.data) StoreNumbers(slope, dx.data + row * dx.stride + column);
  }
};

template <int kWidth, typename From, typename To>
struct ConvertBody {
  static constexpr int kSums = 0;
  Rows<const From> x;
  Rows<To> y;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>*) const {
    StoreNumbers(LoadNumbers<kWidth>(x.data + row * x.stride + column), y.data + row * y.stride + column);
  }
};
template <int kWidth, typename T>
struct AddBody {
  static constexpr int kSums = 0;
  Rows<const T> x;
  Rows<T> y;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>*) const {
    auto sum = LoadNumbers<kWidth>(y.data + row * y.stride + column);
    const auto addend = LoadNumbers<kWidth>(x.data + row * x.stride + column);
    for (int k = 0; k < kWidth; ++k) sum.value[k] += addend.value[k];
    StoreNumbers(sum, y.data + row * y.stride + column);
  }
};
template <int kWidth, typename T>
struct FillBody {
  static constexpr int kSums = 0;
  float value;
  Rows<T> y;
  __device__ void Visit(int64_t row, int64_t column, Numbers<kWidth>*) const {
    Numbers<kWidth> numbers;
    for (int k = 0; k < kWidth; ++k) numbers.value[k] = value;
    StoreNumbers(numbers, y.data + row * y.stride + column);
  }
};

template <typename T>
Rows<const T> Const(Rows<T> rows) {
  return {rows.data, rows.stride};
}

}  // namespace

int64_t ColumnSumFloats(int64_t rows, int64_t width, int64_t sums) {
  const int64_t shares = DivideUp(rows, kLeastShare);
  return (shares < kMostShares ? shares : kMostShares) * width * sums;
}

template <typename From, typename To>
void Convert(int64_t rows, int64_t width, Rows<const From> x, Rows<To> y, device::Stream stream) {
  if (InEights(width, x) && InEights(width, Const(y))) {
    LaunchVisit<8>("convert", rows, width, ConvertBody<8, From, To>{x, y}, nullptr, stream);
  } else {
    LaunchVisit<1>("convert", rows, width, ConvertBody<1, From, To>{x, y}, nullptr, stream);
  }
}
template <typename T>
void CopyOrAdd(int64_t rows, int64_t width, Rows<const T> x, Rows<T> y, Assign assign, device::Stream stream) {
  if (assign == Assign::kOverwrite) return Convert<T, T>(rows, width, x, y, stream);
  if (InEights(width, x) && InEights(width, Const(y))) {
    LaunchVisit<8>("add", rows, width, AddBody<8, T>{x, y}, nullptr, stream);
  } else {
    LaunchVisit<1>("add", rows, width, AddBody<1, T>{x, y}, nullptr, stream);
  }
}
template <typename T>
void FillColumns(int64_t rows, int64_t width, float value, Rows<T> y, device::Stream stream) {
  LaunchVisit<1>("fill", rows, width, FillBody<1, T>{value, y}, nullptr, stream);
}

template <typename T>
void ActivationForward(ActivationKind kind, int64_t rows, int64_t width, Rows<const T> x, const float* bias, Rows<T> y,
                       device::Stream stream) {
  if (InEights(width, x) && InEights(width, Const(y))) {
    LaunchVisit<8>("activation forward", rows, width, ForwardBody<8, T>{kind, x, bias, y}, nullptr, stream);
  } else {
    LaunchVisit<1>("activation forward", rows, width, ForwardBody<1, T>{kind, x, bias, y}, nullptr, stream);
  }
}
template <typename T>
void ActivationBackward(ActivationKind kind, int64_t rows, int64_t width, Rows<const T> x, const float* bias,
                        Rows<const T> y, Rows<const T> dy, Rows<T> dx, float* dbias, float* partial,
                        device::Stream stream) {
  if (InEights(width, x) && InEights(width, y) && InEights(width, dy) && InEights(width, Const(dx))) {
    LaunchVisit<8>("activation backward", rows, width, BackwardBody<8, T>{kind, x, bias, y, dy, dx}, partial, stream);
  } else {
    LaunchVisit<1>("activation backward", rows, width, BackwardBody<1, T>{kind, x, bias, y, dy, dx}, partial, stream);
  }
  LaunchAddShares<1>(rows, width, partial, {{dbias}}, stream);
}

#define PORTOLAN_FOR(T)                                                                                             \
  template void CopyOrAdd<T>(int64_t, int64_t, Rows<const T>, Rows<T>, Assign, device::Stream);                     \
  template void FillColumns<T>(int64_t, int64_t, float, Rows<T>, device::Stream);                                   \
  template void Convert<float, T>(int64_t, int64_t, Rows<const float>, Rows<T>, device::Stream);                    \
  template void ActivationForward<T>(ActivationKind, int64_t, int64_t, Rows<const T>, const float*, Rows<T>,        \
                                     device::Stream);                                                               \
  template void ActivationBackward<T>(ActivationKind, int64_t, int64_t, Rows<const T>, const float*, Rows<const T>, \
                                      Rows<const T>, Rows<T>, float*, float*, device::Stream);
PORTOLAN_FOR(float)
PORTOLAN_FOR(Bf16)
#undef PORTOLAN_FOR
template void Convert<Bf16, float>(int64_t, int64_t, Rows<const Bf16>, Rows<float>, device::Stream);

}  // namespace portolan::kernels::cuda
