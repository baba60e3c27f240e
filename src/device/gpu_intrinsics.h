#pragma once

// The words in which a GPU kernel is written: the one place where wave size, wave operations, barriers, atomics, shared
// memory, vector loads and asynchronous copies exist. A kernel is a functor:
//
//   struct RowSum {
//     static constexpr const char* kName = "row_sum";
//     static constexpr int kThreads = 256;           // work-items a block
//     struct Shared { SharedArray<float, 8> partial; };   // or: using Shared = NoShared;
//     const float* in;                               // [rows, 256]
//     float* out;                                    // [rows]
//     PORTOLAN_DEVICE void operator()(Shared& shared) const;
//   };
//   Launch(stream, blocks, RowSum{in, out});
//
// The same source is compiled for four targets; PORTOLAN_BACKEND is the namespace of the one at hand:
//   emu32, emu64   the CPU, a fiber a work-item (device/emu/emulator.h), every misuse reported
//   cuda           nvcc
//   hip            clang for CDNA, with no ROCm installed (device/hip/intrinsics.h)
//
// Rules that hold on all of them, and that the emulator checks:
//   - SyncBlock() is reached by all work-items of the block, at the same line, before any of them returns.
//   - A wave operation over groups of kLanes lanes (kWaveSize unless stated) is reached by all lanes of the group that
//     have not returned. Different groups need not agree.
//   - Two work-items touch one shared element without SyncBlock() between (within a wave: SyncWave()) only if both read
//     or both are atomic.
//   - A shared element is named with its type (`float x = shared.partial[i]`): `auto` would take the emulator's proxy.
//   - Whoever wraps a wave operation or a barrier in a function passes PORTOLAN_CALL_SITE on: the emulator tells
//     rendezvous apart by their line in the kernel.

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__) && !defined(__HIP__)
#define PORTOLAN_BACKEND cuda
#include "device/cuda/intrinsics.h"
#elif defined(__HIP__)
#define PORTOLAN_BACKEND hip
#include "device/hip/intrinsics.h"
#elif defined(PORTOLAN_EMU_WAVE) && PORTOLAN_EMU_WAVE == 32
#define PORTOLAN_BACKEND emu32
#include "device/emu/intrinsics.h"
#elif defined(PORTOLAN_EMU_WAVE) && PORTOLAN_EMU_WAVE == 64
#define PORTOLAN_BACKEND emu64
#include "device/emu/intrinsics.h"
#else
#error "device/gpu_intrinsics.h: compile with nvcc, with clang -x hip, or with -DPORTOLAN_EMU_WAVE=32 or 64"
#endif

namespace portolan::device::PORTOLAN_BACKEND {

// What the back ends provide (their headers have the signatures; `where` is the call's place, filled in by itself):
//   ThreadIndex() BlockIndex() BlockCount()      own place in a one-dimensional launch
//   SharedArray<T, n>                            [i], LoadVec<w>(i), StoreVec<w>(i, vec), AtomicAdd(i, x)
//   SyncBlock() SyncWave<lanes>()                barriers; both order shared memory
//   AtomicAdd(p, x) DeviceFence()                global memory, device-wide
//   LoadVec<w>(p) StoreVec(p, vec)               up to 16 bytes at once, aligned to their width
//   Exp Log Sqrt Floor Erf                       fp32
// and on the host: Launch(stream, blocks, kernel), Scratch<T>(stream, count), CopyToHost, CopyToDevice.

PORTOLAN_DEVICE inline int LaneIndex() { return ThreadIndex() % kWaveSize; }
PORTOLAN_DEVICE inline int WaveIndex() { return ThreadIndex() / kWaveSize; }

// The lanes of a wave as a set. It does not turn into an integer by itself: a mask kept in 32 bits loses half a wave of
// 64 lanes.
struct LaneMask {
  uint64_t bits;

  PORTOLAN_DEVICE bool Has(int lane) const { return ((bits >> lane) & 1) != 0; }
  PORTOLAN_DEVICE int Count() const { return PopCount(bits); }
  // How many lanes below `lane` are in the set: the place of a lane in a compaction.
  PORTOLAN_DEVICE int CountBelow(int lane) const { return PopCount(bits & ((uint64_t{1} << lane) - 1)); }
  // The lowest lane of the set, which must not be empty.
  PORTOLAN_DEVICE int First() const { return CountTrailingZeros(bits); }
};

// The lanes of the wave whose `vote` is true.
PORTOLAN_DEVICE inline LaneMask Ballot(bool vote, PORTOLAN_CALL_SITE) { return {BallotBits(vote, where)}; }
PORTOLAN_DEVICE inline bool Any(bool vote, PORTOLAN_CALL_SITE) { return BallotBits(vote, where) != 0; }
PORTOLAN_DEVICE inline bool All(bool vote, PORTOLAN_CALL_SITE) { return BallotBits(!vote, where) == 0; }

// `value` of lane `source` of the own group of kLanes lanes; source in [0, kLanes).
template <int kLanes = kWaveSize, typename T>
PORTOLAN_DEVICE T Shuffle(T value, int source, PORTOLAN_CALL_SITE) {
  static_assert(kLanes >= 1 && kLanes <= kWaveSize && (kLanes & (kLanes - 1)) == 0, "a group is a power of two");
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  return ShuffleLane<kLanes>(value, source, where);
}

// `value` of the lane whose index differs from the own in the bits of kMask < kLanes.
template <int kMask, int kLanes = kWaveSize, typename T>
PORTOLAN_DEVICE T ShuffleXor(T value, PORTOLAN_CALL_SITE) {
  static_assert(kMask > 0 && kMask < kLanes && kLanes <= kWaveSize, "the partner must lie in the group");
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  return ShuffleXorLane<kMask, kLanes>(value, where);
}

// Sum or maximum over the group of kLanes lanes, the same in every lane; halves are added in a fixed order, so that the
// result depends on nothing else.
template <int kLanes = kWaveSize, typename T>
PORTOLAN_DEVICE T WaveSum(T value, PORTOLAN_CALL_SITE) {
  if constexpr (kLanes > 1) {
    value += ShuffleXor<kLanes / 2, kLanes>(value, where);
    if constexpr (kLanes > 2) value = WaveSum<kLanes / 2>(value, where);
  }
  return value;
}

template <int kLanes = kWaveSize, typename T>
PORTOLAN_DEVICE T WaveMax(T value, PORTOLAN_CALL_SITE) {
  if constexpr (kLanes > 1) {
    T other = ShuffleXor<kLanes / 2, kLanes>(value, where);
    value = value < other ? other : value;
    if constexpr (kLanes > 2) value = WaveMax<kLanes / 2>(value, where);
  }
  return value;
}

// Sum over the lanes of the wave up to and including the own.
template <typename T>
PORTOLAN_DEVICE T WavePrefixSum(T value, PORTOLAN_CALL_SITE) {
  for (int distance = 1; distance < kWaveSize; distance *= 2) {
    const bool has = LaneIndex() >= distance;
    const T before = Shuffle(value, has ? LaneIndex() - distance : LaneIndex(), where);
    if (has) value += before;
  }
  return value;
}

// Scratch for BlockSum and BlockPrefixSum: one element a wave.
template <typename T, int kThreads>
struct BlockSumScratch {
  static constexpr int kWaves = (kThreads + kWaveSize - 1) / kWaveSize;
  SharedArray<T, kWaves> partial;
};

// Sum over the block, the same in every work-item. Two block barriers; the scratch may be used again afterwards. The
// block must be a multiple of the wave.
template <typename T, int kThreads>
PORTOLAN_DEVICE T BlockSum(T value, BlockSumScratch<T, kThreads>& scratch, PORTOLAN_CALL_SITE) {
  static_assert(kThreads % kWaveSize == 0, "the last wave must be full");
  value = WaveSum(value, where);
  if (LaneIndex() == 0) scratch.partial[WaveIndex()] = value;
  SyncBlock(where);
  T sum = T{};
  for (int wave = 0; wave < BlockSumScratch<T, kThreads>::kWaves; ++wave) {
    T partial = scratch.partial[wave];
    sum += partial;
  }
  SyncBlock(where);
  return sum;
}

template <typename T>
struct Prefix {
  T before;  // sum over the work-items with a smaller index
  T total;   // sum over the block
};

// Prefix sums over the block. Two block barriers; the scratch may be used again afterwards.
template <typename T, int kThreads>
PORTOLAN_DEVICE Prefix<T> BlockPrefixSum(T value, BlockSumScratch<T, kThreads>& scratch, PORTOLAN_CALL_SITE) {
  static_assert(kThreads % kWaveSize == 0, "the last wave must be full");
  const T upto = WavePrefixSum(value, where);
  if (LaneIndex() == kWaveSize - 1) scratch.partial[WaveIndex()] = upto;
  SyncBlock(where);
  Prefix<T> prefix = {upto - value, T{}};
  for (int wave = 0; wave < BlockSumScratch<T, kThreads>::kWaves; ++wave) {
    const T partial = scratch.partial[wave];
    if (wave < WaveIndex()) prefix.before += partial;
    prefix.total += partial;
  }
  SyncBlock(where);
  return prefix;
}

}  // namespace portolan::device::PORTOLAN_BACKEND

namespace portolan::kernels::PORTOLAN_BACKEND {
using namespace ::portolan::device::PORTOLAN_BACKEND;  // NOLINT: the vocabulary of every gpu.cc
}
