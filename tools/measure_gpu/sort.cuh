#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <memory>

#include "timing.cuh"

namespace measure {

// One radix sort of (row number, lookup number) pairs, as the backward pass needs it.
template <typename Key>
class PairSort {
 public:
  PairSort(int items, int bits) : items_(items), bits_(bits), keys_(items), values_(items), sequence_(items) {
    std::vector<uint32_t> host(items);
    for (int i = 0; i < items; ++i) host[i] = i;
    CUDA_CHECK(cudaMemcpy(sequence_.get(), host.data(), items * 4ull, cudaMemcpyHostToDevice));
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, scratch_bytes_, keys_.get(), keys_.get(), sequence_.get(),
                                               values_.get(), items, 0, bits));
    scratch_ = std::make_unique<DeviceArray<char>>(scratch_bytes_);
  }
  void Run(cudaStream_t stream, const Key* keys) {
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch_->get(), scratch_bytes_, keys, keys_.get(), sequence_.get(),
                                               values_.get(), items_, 0, bits_, stream));
  }
  void Check(const Key* keys) const {
    std::vector<Key> input(items_);
    CUDA_CHECK(cudaMemcpy(input.data(), keys, items_ * sizeof(Key), cudaMemcpyDeviceToHost));
    const std::vector<Key> sorted = keys_.ToHost();
    const std::vector<uint32_t> values = values_.ToHost();
    for (int i = 0; i < items_; ++i) {
      if (sorted[i] != input[values[i]] || (i > 0 && sorted[i] < sorted[i - 1])) FailCheck("sort");
    }
  }
  const Key* keys() const { return keys_.get(); }
  const uint32_t* values() const { return values_.get(); }

 private:
  int items_;
  int bits_;
  size_t scratch_bytes_ = 0;
  DeviceArray<Key> keys_;
  DeviceArray<uint32_t> values_;
  DeviceArray<uint32_t> sequence_;
  std::unique_ptr<DeviceArray<char>> scratch_;
};

static __global__ void Narrow(const int64_t* in, uint32_t* out, int64_t n) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    out[i] = static_cast<uint32_t>(in[i]);
  }
}

inline void MeasureSort(Report& report) {
  for (const int items : {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24}) {
    for (const int bits : {24, 32}) {
      DeviceArray<int64_t> wide_a(items), wide_b(items);
      DeviceArray<uint32_t> narrow_a(items), narrow_b(items);
      FillIndices<<<2048, 256>>>(wide_a.get(), items, int64_t{1} << bits, 0.0, 5);
      FillIndices<<<2048, 256>>>(wide_b.get(), items, int64_t{1} << bits, 0.0, 6);
      Narrow<<<2048, 256>>>(wide_a.get(), narrow_a.get(), items);
      Narrow<<<2048, 256>>>(wide_b.get(), narrow_b.get(), items);
      PairSort<int64_t> wide(items, bits);
      wide.Run(nullptr, wide_a.get());
      wide.Check(wide_a.get());
      report.Add("sort_pairs",
                 TimeInGraph(4, [&](cudaStream_t s, int i) { wide.Run(s, i % 2 ? wide_b.get() : wide_a.get()); }),
                 "\"items\": %d, \"bits\": %d, \"key_bytes\": 8, \"value_bytes\": 4", items, bits);
      PairSort<uint32_t> narrow(items, bits);
      narrow.Run(nullptr, narrow_a.get());
      narrow.Check(narrow_a.get());
      report.Add("sort_pairs",
                 TimeInGraph(4, [&](cudaStream_t s, int i) { narrow.Run(s, i % 2 ? narrow_b.get() : narrow_a.get()); }),
                 "\"items\": %d, \"bits\": %d, \"key_bytes\": 4, \"value_bytes\": 4", items, bits);
    }
  }
}

}  // namespace measure
