#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <memory>

#include "timing.cuh"

namespace measure {

constexpr int kIndexSets = 4;  // rotated, so that no launch finds its rows in the cache

struct Reuse {
  int64_t unique = 0;
  double share[18] = {};  // of the lookups, by how often their row is looked up: bin i is (2^(i-1), 2^i]
  int64_t hottest = 0;
};

// Exact reuse of one index set: sort, run lengths, histogram on the host.
inline Reuse CountReuse(const int64_t* indices, int64_t count) {
  DeviceArray<int64_t> sorted(count);
  DeviceArray<int64_t> unique(count);
  DeviceArray<int> lengths(count);
  DeviceArray<int64_t> runs(1);
  size_t sort_bytes = 0;
  size_t encode_bytes = 0;
  const int items = static_cast<int>(count);
  CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, sort_bytes, indices, sorted.get(), items, 0, 40));
  CUDA_CHECK(cub::DeviceRunLengthEncode::Encode(nullptr, encode_bytes, sorted.get(), unique.get(), lengths.get(),
                                                runs.get(), items));
  DeviceArray<char> scratch(std::max(sort_bytes, encode_bytes));
  CUDA_CHECK(cub::DeviceRadixSort::SortKeys(scratch.get(), sort_bytes, indices, sorted.get(), items, 0, 40));
  CUDA_CHECK(cub::DeviceRunLengthEncode::Encode(scratch.get(), encode_bytes, sorted.get(), unique.get(), lengths.get(),
                                                runs.get(), items));
  Reuse reuse;
  reuse.unique = runs.ToHost()[0];
  const std::vector<int> host = lengths.ToHost();
  for (int64_t i = 0; i < reuse.unique; ++i) {
    int bin = 0;
    while (bin < 17 && host[i] > (int64_t{1} << bin)) ++bin;
    reuse.share[bin] += static_cast<double>(host[i]) / static_cast<double>(count);
    reuse.hottest = std::max<int64_t>(reuse.hottest, host[i]);
  }
  return reuse;
}

inline std::string ReuseJson(const Reuse& reuse) {
  std::string text = "\"unique\": " + std::to_string(reuse.unique) + ", \"hottest\": " + std::to_string(reuse.hottest) +
                     ", \"reuse_share\": [";
  for (int bin = 0; bin < 18; ++bin) {
    char value[32];
    std::snprintf(value, sizeof(value), "%s%.4f", bin == 0 ? "" : ", ", reuse.share[bin]);
    text += value;
  }
  return text + "]";
}

// out[bag] = sum of table[indices[bag * pooling + l]]; a group of kLanes threads owns a bag, each thread kVectors
// 16-byte pieces of the row; kUnroll rows are in flight.
template <int kLanes, int kVectors>
__global__ void GatherPool(const float4* __restrict__ table, const int64_t* __restrict__ indices,
                           float4* __restrict__ out, int64_t bags, int pooling) {
  constexpr int kUnroll = kVectors == 1 ? 4 : 2;
  const int64_t bag = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  if (bag >= bags) return;
  constexpr int kRow = kLanes * kVectors;
  float4 sum[kVectors] = {};
  const int64_t* bag_indices = indices + bag * pooling;
  int l = 0;
  for (; l + kUnroll <= pooling; l += kUnroll) {
    float4 rows[kUnroll][kVectors];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const float4* row = table + __ldg(bag_indices + l + u) * kRow;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) rows[u][v] = __ldg(row + v * kLanes + lane);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        sum[v].x += rows[u][v].x, sum[v].y += rows[u][v].y, sum[v].z += rows[u][v].z, sum[v].w += rows[u][v].w;
      }
    }
  }
  for (; l < pooling; ++l) {
    const float4* row = table + __ldg(bag_indices + l) * kRow;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float4 a = __ldg(row + v * kLanes + lane);
      sum[v].x += a.x, sum[v].y += a.y, sum[v].z += a.z, sum[v].w += a.w;
    }
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) out[bag * kRow + v * kLanes + lane] = sum[v];
}

inline void LaunchGather(cudaStream_t stream, int row_bytes, const float4* table, const int64_t* indices, float4* out,
                         int64_t bags, int pooling) {
  const int lanes = std::min(row_bytes / 16, 32);
  const int grid = static_cast<int>((bags * lanes + 255) / 256);
  switch (row_bytes) {
    case 16:
      GatherPool<1, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 32:
      GatherPool<2, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 64:
      GatherPool<4, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 128:
      GatherPool<8, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 256:
      GatherPool<16, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 512:
      GatherPool<32, 1><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 1024:
      GatherPool<32, 2><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    case 2048:
      GatherPool<32, 4><<<grid, 256, 0, stream>>>(table, indices, out, bags, pooling);
      break;
    default:
      FailCheck("row bytes");
  }
}

inline void CheckGather(const float4* out, const int64_t* indices, int64_t bags, int pooling, int row_bytes) {
  const int columns = row_bytes / 4;
  for (int sample = 0; sample < 64; ++sample) {
    const int64_t bag = sample == 0 ? bags - 1 : static_cast<int64_t>(Mix(sample) % static_cast<uint64_t>(bags));
    std::vector<float> got(columns);
    std::vector<int64_t> rows(pooling);
    CUDA_CHECK(cudaMemcpy(got.data(), reinterpret_cast<const char*>(out) + bag * row_bytes, row_bytes,
                          cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(rows.data(), indices + bag * pooling, pooling * 8, cudaMemcpyDeviceToHost));
    for (int c = 0; c < columns; ++c) {
      float expected = 0;  // exact: at most 20 multiples of 2^-16 below 1
      for (const int64_t row : rows) expected += CellValue(row, c);
      if (got[c] != expected) FailCheck("gather");
    }
  }
}

// `tables` tables of `rows` rows each, looked up one after the other.
inline void MeasureGatherCase(Report& report, const float4* table, int64_t rows, int row_bytes, double exponent,
                              int pooling, int64_t lookups, float4* out, int tables = 1) {
  const int64_t bags_per_table = lookups / pooling / tables;
  const int64_t bags = bags_per_table * tables;
  lookups = bags * pooling;
  std::vector<std::unique_ptr<DeviceArray<int64_t>>> sets;
  for (int set = 0; set < kIndexSets; ++set) {
    sets.push_back(std::make_unique<DeviceArray<int64_t>>(lookups));
    for (int t = 0; t < tables; ++t) {
      FillIndices<<<2048, 256>>>(sets.back()->get() + t * bags_per_table * pooling, bags_per_table * pooling, rows,
                                 exponent, 17 + set + 1000 * t, t * rows);
    }
  }
  CUDA_CHECK(cudaMemset(out, 0xff, bags * row_bytes));
  LaunchGather(nullptr, row_bytes, table, sets[0]->get(), out, bags, pooling);
  CUDA_CHECK(cudaDeviceSynchronize());
  CheckGather(out, sets[0]->get(), bags, pooling, row_bytes);
  const Spread spread = TimeInGraph(8, [&](cudaStream_t s, int i) {
    LaunchGather(s, row_bytes, table, sets[i % kIndexSets]->get(), out, bags, pooling);
  });
  report.Add(
      "gather_pool", spread,
      "\"row_bytes\": %d, \"tables\": %d, \"rows\": %lld, \"zipf\": %.2f, \"pooling\": %d, \"lookups\": %lld, %s",
      row_bytes, tables, (long long)rows * tables, exponent, pooling, (long long)lookups,
      ReuseJson(CountReuse(sets[0]->get(), lookups)).c_str());
}

inline void MeasureGather(Report& report, int multiprocessors) {
  const int64_t table_bytes = int64_t{64} << 30;
  DeviceArray<float4> table(table_bytes / 16);
  DeviceArray<float4> out(int64_t{4} << 30 >> 4);
  for (int row_bytes = 16; row_bytes <= 2048; row_bytes *= 2) {
    const int64_t rows = (int64_t{16} << 30) / row_bytes;
    const int64_t zipf_rows = int64_t{1} << 23;
    const int64_t lookups = row_bytes <= 256 ? 1 << 22 : 1 << 20;
    FillCells<<<multiprocessors * 16, 256>>>(table.get(), rows, row_bytes / 16);
    for (const int pooling : {1, 20}) {
      MeasureGatherCase(report, table.get(), rows, row_bytes, 0.0, pooling, lookups, out.get());
      MeasureGatherCase(report, table.get(), zipf_rows, row_bytes, 1.05, pooling, lookups, out.get());
    }
  }
  // Size of the launch, of the table (address translation), and a set that the L2 holds.
  const int row_bytes = 512;
  FillCells<<<multiprocessors * 16, 256>>>(table.get(), table_bytes / row_bytes, row_bytes / 16);
  for (const int64_t lookups : {1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
    MeasureGatherCase(report, table.get(), (int64_t{16} << 30) / row_bytes, row_bytes, 0.0, 20, lookups, out.get());
  }
  for (const int64_t bytes : {int64_t{8} << 20, int64_t{32} << 20, int64_t{64} << 20, int64_t{1} << 30, table_bytes}) {
    MeasureGatherCase(report, table.get(), bytes / row_bytes, row_bytes, 0.0, 20, 1 << 20, out.get());
  }
  // Eight tables: together larger than the L2, one by one not (16 MiB), about as large (64 MiB), or skewed.
  MeasureGatherCase(report, table.get(), 1 << 15, row_bytes, 0.0, 20, 1 << 21, out.get(), 8);
  MeasureGatherCase(report, table.get(), 1 << 17, row_bytes, 0.0, 20, 1 << 21, out.get(), 8);
  MeasureGatherCase(report, table.get(), 1 << 20, row_bytes, 1.05, 20, 1 << 21, out.get(), 8);
}

}  // namespace measure
