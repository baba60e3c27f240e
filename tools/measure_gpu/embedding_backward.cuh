#pragma once

#include <cmath>

#include "embedding_forward.cuh"
#include "sort.cuh"

namespace measure {

enum class Optimizer { kSgd, kRowwiseAdagrad, kAdagrad };

inline const char* OptimizerName(Optimizer optimizer) {
  return optimizer == Optimizer::kSgd ? "sgd" : optimizer == Optimizer::kAdagrad ? "adagrad" : "rowwise_adagrad";
}

constexpr int kShortRun = 32;  // longer runs of one row are split over blocks
constexpr int kChunk = 256;    // lookups that one block adds
constexpr float kRate = 0.01f;
constexpr float kEpsilon = 1e-8f;

struct LongRun {
  int run;
  int slot;  // row of the scratch gradient
};
struct Chunk {
  int run;
  int slot;
  int first;
};

struct Tables {
  float4* weights;
  float4* state;           // adagrad: one value a column
  float* row_state;        // row-wise adagrad
  const float4* gradient;  // [bags, dim]
};

// Sum of squares over a row's gradient; every lane of the warp must take part.
template <int kVectors>
__device__ float SumOfSquares(const float4 (&sum)[kVectors], int lanes) {
  float squares = 0;
  for (int v = 0; v < kVectors; ++v) {
    squares += sum[v].x * sum[v].x + sum[v].y * sum[v].y + sum[v].z * sum[v].z + sum[v].w * sum[v].w;
  }
  for (int step = lanes / 2; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);
  return squares;
}

template <int kVectors>
__device__ void UpdateRow(const Tables& t, Optimizer optimizer, int64_t row, const float4 (&sum)[kVectors],
                          float squares, int lanes, int lane) {
  const int64_t base = row * (lanes * kVectors) + lane;
  float rate = kRate;
  if (optimizer == Optimizer::kRowwiseAdagrad) {
    const float state = t.row_state[row] + squares / static_cast<float>(lanes * kVectors * 4);
    if (lane == 0) t.row_state[row] = state;
    rate = kRate / (sqrtf(state) + kEpsilon);
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    float4 w = t.weights[base + v * lanes];
    const float4 g = sum[v];
    if (optimizer == Optimizer::kAdagrad) {
      float4 h = t.state[base + v * lanes];
      h.x += g.x * g.x, h.y += g.y * g.y, h.z += g.z * g.z, h.w += g.w * g.w;
      t.state[base + v * lanes] = h;
      w.x -= kRate * g.x / (sqrtf(h.x) + kEpsilon), w.y -= kRate * g.y / (sqrtf(h.y) + kEpsilon);
      w.z -= kRate * g.z / (sqrtf(h.z) + kEpsilon), w.w -= kRate * g.w / (sqrtf(h.w) + kEpsilon);
    } else {
      w.x -= rate * g.x, w.y -= rate * g.y, w.z -= rate * g.z, w.w -= rate * g.w;
    }
    t.weights[base + v * lanes] = w;
  }
}

template <int kVectors>
__device__ void AddLookups(const float4* gradient, const uint32_t* lookups, int count, int step, int pooling, int lanes,
                           int lane, float4 (&sum)[kVectors]) {
#pragma unroll 4
  for (int i = 0; i < count; i += step) {
    const float4* g = gradient + static_cast<int64_t>(lookups[i] / pooling) * (lanes * kVectors) + lane;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float4 a = __ldg(g + v * lanes);
      sum[v].x += a.x, sum[v].y += a.y, sum[v].z += a.z, sum[v].w += a.w;
    }
  }
}

struct Runs {
  const int64_t* rows;
  const int* starts;
  const int* lengths;
  const int* count;
  const uint32_t* lookups;
  LongRun* long_runs;
  Chunk* chunks;
  int* counters;  // [0] long runs, [1] chunks
  float4* scratch;
};

// A group of kLanes threads owns a run; runs that are too long are listed for the next kernel.
template <int kLanes, int kVectors>
__global__ void UpdateShortRuns(Runs r, Tables t, Optimizer optimizer, int pooling) {
  const int groups = gridDim.x * blockDim.x / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int runs = *r.count;
  const int rounds = (runs + groups - 1) / groups;
  int run = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes;
  for (int round = 0; round < rounds; ++round, run += groups) {
    float4 sum[kVectors] = {};
    const int length = run < runs ? r.lengths[run] : 0;
    const bool is_short = length > 0 && length <= kShortRun;
    if (is_short) AddLookups<kVectors>(t.gradient, r.lookups + r.starts[run], length, 1, pooling, kLanes, lane, sum);
    if (length > kShortRun && lane == 0) {
      const int slot = atomicAdd(r.counters, 1);
      r.long_runs[slot] = {run, slot};
      const int chunks = (length + kChunk - 1) / kChunk;
      const int first = atomicAdd(r.counters + 1, chunks);
      for (int c = 0; c < chunks; ++c) r.chunks[first + c] = {run, slot, c * kChunk};
    }
    __syncwarp();
    const float squares = optimizer == Optimizer::kRowwiseAdagrad ? SumOfSquares<kVectors>(sum, kLanes) : 0.0f;
    if (is_short) UpdateRow<kVectors>(t, optimizer, r.rows[run], sum, squares, kLanes, lane);
  }
}

// One block adds one chunk of a long run into the scratch gradient.
template <int kLanes, int kVectors>
__global__ void AddLongRuns(Runs r, Tables t, int pooling) {
  __shared__ float4 partial[256 * kVectors];
  const int lane = threadIdx.x % kLanes;
  const int group = threadIdx.x / kLanes;
  constexpr int kGroups = 256 / kLanes;
  const int chunks = r.counters[1];
  for (int c = blockIdx.x; c < chunks; c += gridDim.x) {
    const Chunk chunk = r.chunks[c];
    const int length = min(kChunk, r.lengths[chunk.run] - chunk.first);
    float4 sum[kVectors] = {};
    if (group < length) {
      AddLookups<kVectors>(t.gradient, r.lookups + r.starts[chunk.run] + chunk.first + group, length - group, kGroups,
                           pooling, kLanes, lane, sum);
    }
    for (int v = 0; v < kVectors; ++v) partial[v * 256 + threadIdx.x] = sum[v];
    __syncthreads();
    for (int i = threadIdx.x; i < kLanes * kVectors; i += 256) {
      float4 total = make_float4(0, 0, 0, 0);
      const int v = i / kLanes;
      for (int g = 0; g < kGroups; ++g) {
        const float4 a = partial[v * 256 + g * kLanes + i % kLanes];
        total.x += a.x, total.y += a.y, total.z += a.z, total.w += a.w;
      }
      float* out = reinterpret_cast<float*>(r.scratch + static_cast<int64_t>(chunk.slot) * (kLanes * kVectors) + i);
      atomicAdd(out, total.x), atomicAdd(out + 1, total.y), atomicAdd(out + 2, total.z), atomicAdd(out + 3, total.w);
    }
    __syncthreads();
  }
}

// One warp a long run: all its lanes take part in the row-wise sum, the first kLanes write.
template <int kLanes, int kVectors>
__global__ void UpdateLongRuns(Runs r, Tables t, Optimizer optimizer) {
  const int warps = gridDim.x * blockDim.x / 32;
  const int lane = threadIdx.x % 32;
  const int count = r.counters[0];
  for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += warps) {
    const LongRun run = r.long_runs[i];
    float4 sum[kVectors];
    float4* scratch = r.scratch + static_cast<int64_t>(run.slot) * (kLanes * kVectors) + lane % kLanes;
    for (int v = 0; v < kVectors; ++v) sum[v] = scratch[v * kLanes];
    __syncwarp();
    const float squares = SumOfSquares<kVectors>(sum, kLanes);
    if (lane >= kLanes) continue;
    for (int v = 0; v < kVectors; ++v) scratch[v * kLanes] = make_float4(0, 0, 0, 0);
    UpdateRow<kVectors>(t, optimizer, r.rows[run.run], sum, squares, kLanes, lane);
  }
}

// The whole backward pass of one index set: sort, run lengths and their starts, update.
class Backward {
 public:
  Backward(int items, int bits, int dim, int pooling, int multiprocessors)
      : items_(items),
        dim_(dim),
        pooling_(pooling),
        multiprocessors_(multiprocessors),
        sort_(items, bits),
        rows_(items),
        starts_(items),
        lengths_(items),
        count_(1),
        long_runs_(items / kShortRun + 1),
        chunks_(items / kShortRun + items / kChunk + 2),
        counters_(2),
        scratch_(static_cast<size_t>(items / kShortRun + 1) * dim / 4) {
    CUDA_CHECK(cudaMemset(scratch_.get(), 0, scratch_.size() * 16));
    size_t encode = 0;
    size_t scan = 0;
    CUDA_CHECK(cub::DeviceRunLengthEncode::Encode(nullptr, encode, sort_.keys(), rows_.get(), lengths_.get(),
                                                  count_.get(), items));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, scan, lengths_.get(), starts_.get(), items));
    temporary_bytes_ = std::max(encode, scan);
    temporary_ = std::make_unique<DeviceArray<char>>(temporary_bytes_);
  }
  void Sort(cudaStream_t s, const int64_t* indices) { sort_.Run(s, indices); }
  void FindRuns(cudaStream_t s) {
    size_t bytes = temporary_bytes_;
    CUDA_CHECK(cub::DeviceRunLengthEncode::Encode(temporary_->get(), bytes, sort_.keys(), rows_.get(), lengths_.get(),
                                                  count_.get(), items_, s));
    bytes = temporary_bytes_;
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(temporary_->get(), bytes, lengths_.get(), starts_.get(), items_, s));
  }
  void Update(cudaStream_t s, const Tables& tables, Optimizer optimizer) {
    CUDA_CHECK(cudaMemsetAsync(counters_.get(), 0, 8, s));
    switch (dim_) {
      case 16:
        Launch<4, 1>(s, tables, optimizer);
        break;
      case 32:
        Launch<8, 1>(s, tables, optimizer);
        break;
      case 64:
        Launch<16, 1>(s, tables, optimizer);
        break;
      case 128:
        Launch<32, 1>(s, tables, optimizer);
        break;
      case 256:
        Launch<32, 2>(s, tables, optimizer);
        break;
      case 512:
        Launch<32, 4>(s, tables, optimizer);
        break;
      default:
        FailCheck("dim");
    }
  }
  // Compares the rows of the longest and of 60 other runs with a double-precision sum; weights were CellValue before.
  void Check(const Tables& tables, Optimizer optimizer, const int64_t* indices) const {
    sort_.Check(indices);
    const int runs = count_.ToHost()[0];
    const std::vector<int64_t> rows = rows_.ToHost();
    const std::vector<int> starts = starts_.ToHost();
    const std::vector<int> lengths = lengths_.ToHost();
    const std::vector<uint32_t> lookups(HostLookups());
    const int longest = static_cast<int>(std::max_element(lengths.begin(), lengths.begin() + runs) - lengths.begin());
    for (int sample = 0; sample < 61; ++sample) {
      const int run = sample == 0 ? longest : static_cast<int>(Mix(sample) % static_cast<uint64_t>(runs));
      std::vector<float> got(dim_);
      CUDA_CHECK(cudaMemcpy(got.data(), tables.weights + rows[run] * (dim_ / 4), dim_ * 4, cudaMemcpyDeviceToHost));
      std::vector<double> g(dim_, 0.0);
      double squares = 0;
      for (int c = 0; c < dim_; ++c) {
        for (int i = 0; i < lengths[run]; ++i) g[c] += CellValue(lookups[starts[run] + i] / pooling_, c);
        squares += g[c] * g[c] / dim_;
      }
      for (int c = 0; c < dim_; ++c) {
        const double state = optimizer == Optimizer::kRowwiseAdagrad ? squares : g[c] * g[c];
        const double step = optimizer == Optimizer::kSgd ? g[c] : g[c] / (std::sqrt(state) + kEpsilon);
        const double expected = CellValue(rows[run], c) - kRate * step;
        if (!(std::abs(got[c] - expected) <= 1e-5 * (1.0 + std::abs(expected)))) FailCheck("backward");
      }
    }
  }

 private:
  std::vector<uint32_t> HostLookups() const {
    std::vector<uint32_t> host(items_);
    CUDA_CHECK(cudaMemcpy(host.data(), sort_.values(), items_ * 4ull, cudaMemcpyDeviceToHost));
    return host;
  }
  template <int kLanes, int kVectors>
  void Launch(cudaStream_t s, const Tables& tables, Optimizer optimizer) {
    const Runs runs{rows_.get(),      starts_.get(), lengths_.get(),  count_.get(),  sort_.values(),
                    long_runs_.get(), chunks_.get(), counters_.get(), scratch_.get()};
    UpdateShortRuns<kLanes, kVectors><<<multiprocessors_ * 32, 256, 0, s>>>(runs, tables, optimizer, pooling_);
    AddLongRuns<kLanes, kVectors><<<multiprocessors_ * 8, 256, 0, s>>>(runs, tables, pooling_);
    UpdateLongRuns<kLanes, kVectors><<<multiprocessors_ * 4, 256, 0, s>>>(runs, tables, optimizer);
  }

  int items_, dim_, pooling_, multiprocessors_;
  PairSort<int64_t> sort_;
  DeviceArray<int64_t> rows_;
  DeviceArray<int> starts_, lengths_, count_;
  DeviceArray<LongRun> long_runs_;
  DeviceArray<Chunk> chunks_;
  DeviceArray<int> counters_;
  DeviceArray<float4> scratch_;
  size_t temporary_bytes_ = 0;
  std::unique_ptr<DeviceArray<char>> temporary_;
};

inline void MeasureBackward(Report& report, int multiprocessors) {
  const int bits = 24;
  const int64_t rows = int64_t{1} << bits;
  const int64_t largest_dim = 512;
  DeviceArray<float4> weights(rows * largest_dim / 4);
  DeviceArray<float4> state(rows * largest_dim / 4);
  DeviceArray<float> row_state(rows);
  for (const int items : {1 << 16, 1 << 20, 1 << 22}) {
    DeviceArray<float4> gradient(items * largest_dim / 4);
    for (const double exponent : {0.0, 1.05}) {
      std::vector<std::unique_ptr<DeviceArray<int64_t>>> sets;
      for (int set = 0; set < kIndexSets; ++set) {
        sets.push_back(std::make_unique<DeviceArray<int64_t>>(items));
        FillIndices<<<2048, 256>>>(sets.back()->get(), items, rows, exponent, 40 + set);
      }
      const std::string reuse = ReuseJson(CountReuse(sets[0]->get(), items));
      for (const int dim : {16, 64, 128, 512}) {
        if (dim == 512 && items > 1 << 20) continue;
        for (const int pooling : {1, 20}) {
          Backward backward(items, bits, dim, pooling, multiprocessors);
          FillCells<<<multiprocessors * 16, 256>>>(gradient.get(), items / pooling + 1, dim / 4);
          const Tables tables{weights.get(), state.get(), row_state.get(), gradient.get()};
          for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kRowwiseAdagrad, Optimizer::kAdagrad}) {
            if (optimizer == Optimizer::kAdagrad && pooling != 1) continue;
            FillCells<<<multiprocessors * 16, 256>>>(weights.get(), rows, dim / 4);
            CUDA_CHECK(cudaMemset(state.get(), 0, rows * dim * 4));
            CUDA_CHECK(cudaMemset(row_state.get(), 0, rows * 4));
            backward.Sort(nullptr, sets[0]->get());
            backward.FindRuns(nullptr);
            backward.Update(nullptr, tables, optimizer);
            CUDA_CHECK(cudaDeviceSynchronize());
            backward.Check(tables, optimizer, sets[0]->get());
            const auto add = [&](const char* bench, const Spread& spread) {
              report.Add(bench, spread,
                         "\"dim\": %d, \"optimizer\": \"%s\", \"zipf\": %.2f, \"pooling\": %d, \"lookups\": %d, "
                         "\"rows\": %lld, %s",
                         dim, OptimizerName(optimizer), exponent, pooling, items, (long long)rows, reuse.c_str());
            };
            add("backward", TimeInGraph(8, [&](cudaStream_t s, int i) {
                  backward.Sort(s, sets[i % kIndexSets]->get());
                  backward.FindRuns(s);
                  backward.Update(s, tables, optimizer);
                }));
            if (optimizer == Optimizer::kSgd && dim == 128 && pooling == 1) {
              add("backward_runs", TimeInGraph(8, [&](cudaStream_t s, int) { backward.FindRuns(s); }));
              add("backward_sort",
                  TimeInGraph(8, [&](cudaStream_t s, int i) { backward.Sort(s, sets[i % kIndexSets]->get()); }));
            }
          }
        }
      }
    }
  }
}

}  // namespace measure
