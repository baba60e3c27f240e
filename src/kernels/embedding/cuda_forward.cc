#include <cmath>

#include "kernels/cuda_rows.h"
#include "kernels/embedding/gpu_rows.h"

// Pooled lookups. A group of lanes takes a bag, four columns a lane and several rows on their way at once; a block
// works for one feature.
namespace portolan::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLaneColumns = 4;
constexpr int kRowsAtOnce = 8;
constexpr int64_t kBagsPerBlock = 32;

template <RowFormat kFormat, typename T, int kLanes>
__device__ void PoolBags(const EmbeddingLookups& bags, const EmbeddingFeature& feature, const EmbeddingTable& table,
                         int64_t f, int64_t first_bag, int64_t end_bag, int64_t row_bytes) {
  constexpr int kStep = kLanes * kLaneColumns;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const int dim = table.dim;
  const char* rows = static_cast<const char*>(table.rows);
  T* output = reinterpret_cast<T*>(feature.output);
  const bool rows_aligned = RowsAreAligned(rows, row_bytes, VectorBytes<kFormat, kLaneColumns>());
  const bool out_aligned = RowsAreAligned(output, feature.output_stride * static_cast<int64_t>(sizeof(T)),
                                          kLaneColumns * static_cast<int>(sizeof(T)));
  for (int64_t b = first_bag + group; b < end_bag; b += kThreads / kLanes) {
    const int64_t begin = bags.offsets[f * bags.batch + b], end = bags.offsets[f * bags.batch + b + 1];
    for (int column = lane * kLaneColumns; column < dim; column += kStep) {
      Columns<kLaneColumns> sum = {};
      for (int64_t i = begin; i < end; i += kRowsAtOnce) {
        int64_t id[kRowsAtOnce];
        Columns<kLaneColumns> row[kRowsAtOnce];
#pragma unroll
        for (int k = 0; k < kRowsAtOnce; ++k) id[k] = i + k < end ? __ldg(bags.ids + i + k) : 0;
#pragma unroll
        for (int k = 0; k < kRowsAtOnce; ++k) {
          row[k] = {};
          if (i + k < end) {
            row[k] = LoadColumns<kFormat, kLaneColumns>(rows + id[k] * row_bytes, column, dim, rows_aligned);
          }
        }
#pragma unroll
        for (int k = 0; k < kRowsAtOnce; ++k) {
          const float weight = bags.weights != nullptr && i + k < end ? bags.weights[i + k] : 1.0f;
          for (int c = 0; c < kLaneColumns; ++c) sum.value[c] += weight * row[k].value[c];
        }
      }
      T* out = output + b * feature.output_stride + column;
      if (out_aligned && column + kLaneColumns <= dim) {
        Numbers<kLaneColumns> numbers;
        for (int c = 0; c < kLaneColumns; ++c) numbers.value[c] = sum.value[c];
        StoreNumbers(numbers, out);
      } else {
        for (int c = 0; c < kLaneColumns; ++c) {
          if (column + c < dim) FromFloat(sum.value[c], out + c);
        }
      }
    }
  }
}

// Bytes from one row of a table to the next; in a record the row is followed by its state.
__device__ __forceinline__ int64_t RowStride(const EmbeddingLookups& bags, int32_t table, int64_t row_bytes) {
  if (bags.cached == nullptr || bags.cached[table].record_bytes == 0) return row_bytes;
  return bags.cached[table].record_bytes;
}

// The sum of `count` rows of fp32, four columns of each.
template <int kCount>
__device__ __forceinline__ void AddRows(const float* rows, const int64_t* ids, int64_t stride, Numbers<4>* sum) {
  Numbers<4> row[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) row[k] = LoadNumbers<4>(rows + __ldg(ids + k) * stride);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    for (int c = 0; c < 4; ++c) sum->value[c] += row[k].value[c];
  }
}

// EmbeddingLookups::plain_rows without weights, dims of up to kLanes times four.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kThreads) PoolPlain(EmbeddingLookups bags, int64_t blocks_per_feature) {
  const int64_t f = blockIdx.x / blocks_per_feature, first = blockIdx.x % blocks_per_feature * kBagsPerBlock;
  const int64_t end_bag = first + kBagsPerBlock < bags.batch ? first + kBagsPerBlock : bags.batch;
  const EmbeddingFeature feature = bags.features[f];
  const EmbeddingTable table = bags.tables[feature.table];
  const int dim = table.dim, column = threadIdx.x % kLanes * kLaneColumns;
  if (column >= dim) return;
  const int64_t stride = RowStride(bags, feature.table, int64_t{4} * dim) / 4;
  const float* rows = static_cast<const float*>(table.rows) + column;
  T* output = reinterpret_cast<T*>(feature.output) + column;
  const int64_t* offsets = bags.offsets + f * bags.batch;
  for (int64_t b = first + threadIdx.x / kLanes; b < end_bag; b += kThreads / kLanes) {
    const int64_t* ids = bags.ids + __ldg(offsets + b);
    auto left = static_cast<int>(__ldg(offsets + b + 1) - __ldg(offsets + b));
    Numbers<4> sum = {};
    for (; left >= 8; left -= 8, ids += 8) AddRows<8>(rows, ids, stride, &sum);
    if (left >= 4) {
      AddRows<4>(rows, ids, stride, &sum);
      left -= 4;
      ids += 4;
    }
    if (left == 3) AddRows<3>(rows, ids, stride, &sum);
    if (left == 2) AddRows<2>(rows, ids, stride, &sum);
    if (left == 1) AddRows<1>(rows, ids, stride, &sum);
    StoreNumbers(sum, output + b * feature.output_stride);
  }
}

template <typename T, int kLanes>
__global__ void __launch_bounds__(kThreads) Pool(EmbeddingLookups bags, int64_t blocks_per_feature) {
  const int64_t f = blockIdx.x / blocks_per_feature, first = blockIdx.x % blocks_per_feature * kBagsPerBlock;
  const int64_t end = first + kBagsPerBlock < bags.batch ? first + kBagsPerBlock : bags.batch;
  const EmbeddingFeature feature = bags.features[f];
  const EmbeddingTable table = bags.tables[feature.table];
  const int64_t stride = RowStride(bags, feature.table, RowBytes(table.format, table.dim));
  switch (table.format) {
    case RowFormat::kFp32:
      return PoolBags<RowFormat::kFp32, T, kLanes>(bags, feature, table, f, first, end, stride);
    case RowFormat::kFp16:
      return PoolBags<RowFormat::kFp16, T, kLanes>(bags, feature, table, f, first, end, stride);
    case RowFormat::kBf16:
      return PoolBags<RowFormat::kBf16, T, kLanes>(bags, feature, table, f, first, end, stride);
    case RowFormat::kInt8:
      return PoolBags<RowFormat::kInt8, T, kLanes>(bags, feature, table, f, first, end, stride);
  }
}

// Uniform in +-1 / sqrt(rows), as in engine/network.cc. A block takes a row at a time, by one wave.
__global__ void __launch_bounds__(256)
    FillRows(uint64_t seed, uint64_t first_key, EmbeddingTable table, int64_t row_bytes, float bound) {
  for (int64_t r = blockIdx.x * int64_t{8} + threadIdx.x / 32; r < table.row_count; r += gridDim.x * int64_t{8}) {
    const uint32_t key = RowKey(seed, first_key + static_cast<uint64_t>(r));
    char* row = static_cast<char*>(table.rows) + r * row_bytes;
    float high = -3.402823466e38f, low = 3.402823466e38f;
    const auto value = [&](int d) {
      const float uniform = static_cast<float>(RandomBits(key, static_cast<uint32_t>(d)) >> 8) / 16777216.0f;
      return (2 * uniform - 1) * bound;
    };
    if (table.format == RowFormat::kInt8) {
      for (int d = threadIdx.x % 32; d < table.dim; d += 32) {
        high = fmaxf(high, value(d));
        low = fminf(low, value(d));
      }
      for (int distance = 16; distance > 0; distance /= 2) {
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, distance));
        low = fminf(low, __shfl_xor_sync(0xffffffffu, low, distance));
      }
    }
    const float scale = (high - low) / 255.0f, inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (int d = threadIdx.x % 32; d < table.dim; d += 32) {
      switch (table.format) {
        case RowFormat::kFp32:
          reinterpret_cast<float*>(row)[d] = value(d);
          break;
        case RowFormat::kFp16:
          reinterpret_cast<uint16_t*>(row)[d] = FloatToHalf(value(d));
          break;
        case RowFormat::kBf16:
          reinterpret_cast<uint16_t*>(row)[d] = FloatToBf16(value(d));
          break;
        case RowFormat::kInt8: {
          const float units = rintf((value(d) - low) * inverse);
          reinterpret_cast<uint8_t*>(row)[8 + d] = static_cast<uint8_t>(fminf(fmaxf(units, 0.0f), 255.0f));
          break;
        }
      }
    }
    if (table.format == RowFormat::kInt8 && threadIdx.x % 32 == 0) {
      reinterpret_cast<float*>(row)[0] = scale;
      reinterpret_cast<float*>(row)[1] = low;
    }
  }
}

}  // namespace

template <typename T>
void EmbeddingForward(const EmbeddingLookups& lookups, device::Stream stream) {
  if (lookups.batch <= 0 || lookups.feature_count <= 0) return;
  const int64_t blocks_per_feature = DivideUp(lookups.batch, kBagsPerBlock);
  const auto blocks = static_cast<unsigned>(blocks_per_feature * lookups.feature_count);
  if (lookups.plain_rows && lookups.weights == nullptr && lookups.max_dim <= 32 * kLaneColumns) {
    if (lookups.max_dim <= 8 * kLaneColumns) {
      PoolPlain<T, 8><<<blocks, kThreads, 0, Native(stream)>>>(lookups, blocks_per_feature);
    } else {
      PoolPlain<T, 32><<<blocks, kThreads, 0, Native(stream)>>>(lookups, blocks_per_feature);
    }
  } else if (lookups.max_dim <= 8 * kLaneColumns) {
    Pool<T, 8><<<blocks, kThreads, 0, Native(stream)>>>(lookups, blocks_per_feature);
  } else {
    Pool<T, 32><<<blocks, kThreads, 0, Native(stream)>>>(lookups, blocks_per_feature);
  }
  CheckLaunch("embedding forward");
}
template void EmbeddingForward<float>(const EmbeddingLookups&, device::Stream);
template void EmbeddingForward<Bf16>(const EmbeddingLookups&, device::Stream);

void InitialRows(uint64_t seed, uint64_t table_index, const EmbeddingTable& table, int64_t row_stride_bytes,
                 device::Stream stream) {
  if (table.row_count <= 0) return;
  const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(table.row_count)));
  const int64_t blocks = DivideUp(table.row_count, 8);
  FillRows<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, Native(stream)>>>(
      seed, table_index << 40, table, row_stride_bytes, bound);
  CheckLaunch("initial rows");
}

}  // namespace portolan::kernels::cuda
