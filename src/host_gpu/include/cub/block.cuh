#pragma once

#include "cub/types.cuh"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE
};

inline int RowMajorTid(int = 0, int = 0, int = 0) {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
inline unsigned LaneId() { return portolan::gpu::Lane(); }
inline unsigned WarpId() { return static_cast<unsigned>(RowMajorTid()) / PORTOLAN_GPU_WAVE; }

namespace internal {

// Memory that the object's owner did not name: one for each kind of object.
template <typename Storage, typename Owner>
Storage& PrivateStorage() {
  static portolan::gpu::SharedSlot slot;
  return portolan::gpu::SharedVariable<Storage>(&slot);
}

}  // namespace internal

template <typename T, int kX, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int kY = 1, int kZ = 1, int = 0>
class BlockReduce {
 public:
  static constexpr int kThreads = kX * kY * kZ;
  struct TempStorage {
    T value[kThreads];
  };
  BlockReduce() : storage_(internal::PrivateStorage<TempStorage, BlockReduce>()) {}
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  // The result is thread 0's.
  template <typename Operator>
  PORTOLAN_INLINE T Reduce(T input, Operator op, int valid = kThreads) {
    const int self = RowMajorTid();
    storage_.value[self] = input;
    portolan::gpu::SyncBlock(0);
    T result = input;
    if (self == 0) {
      for (int i = 1; i < valid; ++i) result = op(result, storage_.value[i]);
    }
    return result;
  }
  template <typename Operator, int kItems>
  PORTOLAN_INLINE T Reduce(T (&input)[kItems], Operator op) {
    T own = input[0];
    for (int i = 1; i < kItems; ++i) own = op(own, input[i]);
    return Reduce(own, op);
  }
  PORTOLAN_INLINE T Sum(T input, int valid = kThreads) { return Reduce(input, cub::Sum(), valid); }
  template <int kItems>
  PORTOLAN_INLINE T Sum(T (&input)[kItems]) {
    return Reduce(input, cub::Sum());
  }

 private:
  TempStorage& storage_;
};

template <typename T, int kX, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int kY = 1, int kZ = 1, int = 0>
class BlockScan {
 public:
  static constexpr int kThreads = kX * kY * kZ;
  struct TempStorage {
    T value[kThreads];
  };
  BlockScan() : storage_(internal::PrivateStorage<TempStorage, BlockScan>()) {}
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <typename Operator>
  PORTOLAN_INLINE void InclusiveScan(T input, T& output, Operator op, T& aggregate) {
    const int self = Gather(input);
    T sum = storage_.value[0];
    for (int i = 1; i < kThreads; ++i) {
      if (i == self + 1) output = sum;
      sum = op(sum, storage_.value[i]);
    }
    if (self == kThreads - 1) output = sum;
    aggregate = sum;
  }
  template <typename Operator>
  PORTOLAN_INLINE void InclusiveScan(T input, T& output, Operator op) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
  }
  template <typename Operator>
  PORTOLAN_INLINE void ExclusiveScan(T input, T& output, T initial, Operator op, T& aggregate) {
    const int self = Gather(input);
    T sum = initial;
    T all = storage_.value[0];
    for (int i = 0; i < kThreads; ++i) {
      if (i == self) output = sum;
      sum = op(sum, storage_.value[i]);
      if (i > 0) all = op(all, storage_.value[i]);
    }
    aggregate = all;
  }
  template <typename Operator>
  PORTOLAN_INLINE void ExclusiveScan(T input, T& output, T initial, Operator op) {
    T aggregate;
    ExclusiveScan(input, output, initial, op, aggregate);
  }
  PORTOLAN_INLINE void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  PORTOLAN_INLINE void InclusiveSum(T input, T& output, T& aggregate) {
    InclusiveScan(input, output, cub::Sum(), aggregate);
  }
  PORTOLAN_INLINE void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, cub::Sum()); }
  PORTOLAN_INLINE void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T{}, cub::Sum(), aggregate);
  }
  template <int kItems>
  PORTOLAN_INLINE void ExclusiveSum(T (&input)[kItems], T (&output)[kItems]) {
    T aggregate;
    ExclusiveSum(input, output, aggregate);
  }
  template <int kItems>
  PORTOLAN_INLINE void ExclusiveSum(T (&input)[kItems], T (&output)[kItems], T& aggregate) {
    T own{};
    for (int i = 0; i < kItems; ++i) own = own + input[i];
    T before;
    ExclusiveSum(own, before, aggregate);
    for (int i = 0; i < kItems; ++i) {
      const T value = input[i];
      output[i] = before;
      before = before + value;
    }
  }
  template <int kItems>
  PORTOLAN_INLINE void InclusiveSum(T (&input)[kItems], T (&output)[kItems]) {
    T copy[kItems];
    for (int i = 0; i < kItems; ++i) copy[i] = input[i];
    ExclusiveSum(input, output);
    for (int i = 0; i < kItems; ++i) output[i] = output[i] + copy[i];
  }

 private:
  PORTOLAN_INLINE int Gather(T input) {
    const int self = RowMajorTid();
    storage_.value[self] = input;
    portolan::gpu::SyncBlock(0);
    return self;
  }
  TempStorage& storage_;
};

// Items of a block between memory and its work-items, blocked: work-item i has items i * kItems ...
template <typename T, int kX, int kItems, BlockLoadAlgorithm kAlgorithm = BLOCK_LOAD_DIRECT, int = 1, int = 1, int = 0>
class BlockLoad {
 public:
  struct TempStorage {
    char unused;
  };
  BlockLoad() = default;
  explicit BlockLoad(TempStorage&) {}
  template <typename Iterator>
  void Load(Iterator from, T (&items)[kItems]) {
    for (int i = 0; i < kItems; ++i) items[i] = from[Place(i)];
  }
  template <typename Iterator>
  void Load(Iterator from, T (&items)[kItems], int valid) {
    for (int i = 0; i < kItems; ++i) {
      if (Place(i) < valid) items[i] = from[Place(i)];
    }
  }
  template <typename Iterator, typename Default>
  void Load(Iterator from, T (&items)[kItems], int valid, Default otherwise) {
    for (int i = 0; i < kItems; ++i) items[i] = Place(i) < valid ? static_cast<T>(from[Place(i)]) : static_cast<T>(otherwise);
  }

 private:
  static int Place(int i) {
    return kAlgorithm == BLOCK_LOAD_STRIPED ? i * kX + RowMajorTid() : RowMajorTid() * kItems + i;
  }
};

template <typename T, int kX, int kItems, BlockStoreAlgorithm kAlgorithm = BLOCK_STORE_DIRECT, int = 1, int = 1, int = 0>
class BlockStore {
 public:
  struct TempStorage {
    char unused;
  };
  BlockStore() = default;
  explicit BlockStore(TempStorage&) {}
  template <typename Iterator>
  void Store(Iterator to, T (&items)[kItems]) {
    for (int i = 0; i < kItems; ++i) to[Place(i)] = items[i];
  }
  template <typename Iterator>
  void Store(Iterator to, T (&items)[kItems], int valid) {
    for (int i = 0; i < kItems; ++i) {
      if (Place(i) < valid) to[Place(i)] = items[i];
    }
  }

 private:
  static int Place(int i) {
    return kAlgorithm == BLOCK_STORE_STRIPED ? i * kX + RowMajorTid() : RowMajorTid() * kItems + i;
  }
};

template <typename Key, int kX, int kItems, typename Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS>
class BlockRadixSort {
 public:
  struct TempStorage {
    Key key[kX * kItems];
    Value value[kX * kItems];
  };
  BlockRadixSort() : storage_(internal::PrivateStorage<TempStorage, BlockRadixSort>()) {}
  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}
  PORTOLAN_INLINE void Sort(Key (&keys)[kItems], int = 0, int = 8 * sizeof(Key)) { SortBy(keys, nullptr, false); }
  PORTOLAN_INLINE void SortDescending(Key (&keys)[kItems], int = 0, int = 8 * sizeof(Key)) {
    SortBy(keys, nullptr, true);
  }
  PORTOLAN_INLINE void Sort(Key (&keys)[kItems], Value (&values)[kItems], int = 0, int = 8 * sizeof(Key)) {
    SortBy(keys, values, false);
  }
  PORTOLAN_INLINE void SortDescending(Key (&keys)[kItems], Value (&values)[kItems], int = 0, int = 8 * sizeof(Key)) {
    SortBy(keys, values, true);
  }

 private:
  PORTOLAN_INLINE void SortBy(Key* keys, Value* values, bool descending) {
    const int first = RowMajorTid() * kItems;
    for (int i = 0; i < kItems; ++i) {
      storage_.key[first + i] = keys[i];
      if (values != nullptr) storage_.value[first + i] = values[i];
    }
    portolan::gpu::SyncBlock(0);
    if (RowMajorTid() == 0) {
      std::vector<int> order(kX * kItems);
      for (int i = 0; i < kX * kItems; ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return descending ? storage_.key[b] < storage_.key[a] : storage_.key[a] < storage_.key[b];
      });
      std::vector<Key> sorted(order.size());
      std::vector<Value> moved(order.size());
      for (size_t i = 0; i < order.size(); ++i) sorted[i] = storage_.key[order[i]], moved[i] = storage_.value[order[i]];
      for (size_t i = 0; i < order.size(); ++i) {
        storage_.key[i] = sorted[i];
        if (values != nullptr) storage_.value[i] = moved[i];
      }
    }
    portolan::gpu::SyncBlock(0);
    for (int i = 0; i < kItems; ++i) {
      keys[i] = storage_.key[first + i];
      if (values != nullptr) values[i] = storage_.value[first + i];
    }
    portolan::gpu::SyncBlock(0);
  }
  TempStorage& storage_;
};

// Over the lanes of a logical warp.
template <typename T, int kLanes = PORTOLAN_GPU_WAVE, int = 0>
class WarpReduce {
 public:
  struct TempStorage {
    char unused;
  };
  explicit WarpReduce(TempStorage&) {}
  template <typename Operator>
  PORTOLAN_INLINE T Reduce(T input, Operator op, int valid = kLanes) {
    T result = input;
    const int self = static_cast<int>(portolan::gpu::Lane()) % kLanes;
    for (int distance = 1; distance < kLanes; distance *= 2) {
      const T other = __shfl_down(result, static_cast<unsigned>(distance), kLanes);
      if (self + distance < valid) result = op(result, other);
    }
    return result;
  }
  PORTOLAN_INLINE T Sum(T input, int valid = kLanes) { return Reduce(input, cub::Sum(), valid); }

 private:
};

template <typename T, int kLanes = PORTOLAN_GPU_WAVE, int = 0>
class WarpScan {
 public:
  struct TempStorage {
    char unused;
  };
  explicit WarpScan(TempStorage&) {}
  template <typename Operator>
  PORTOLAN_INLINE void InclusiveScan(T input, T& output, Operator op) {
    T result = input;
    const int self = static_cast<int>(portolan::gpu::Lane()) % kLanes;
    for (int distance = 1; distance < kLanes; distance *= 2) {
      const T other = __shfl_up(result, static_cast<unsigned>(distance), kLanes);
      if (self >= distance) result = op(other, result);
    }
    output = result;
  }
  PORTOLAN_INLINE void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  PORTOLAN_INLINE void ExclusiveSum(T input, T& output) {
    T upto;
    InclusiveSum(input, upto);
    output = upto - input;
  }

 private:
};

}  // namespace cub
