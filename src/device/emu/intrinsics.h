#pragma once

// Included by device/gpu_intrinsics.h only, which says what everything means. Here: waves of PORTOLAN_EMU_WAVE lanes on
// the CPU.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "device/emu/emulator.h"
#include "device/emu/shared_array.h"
#include "device/host_device.h"
#include "device/stream.h"
#include "device/vec.h"

#define PORTOLAN_DEVICE
#define PORTOLAN_CALL_SITE ::portolan::device::emu::SourceLine where = ::portolan::device::emu::SourceLine::Here()

namespace portolan::device::PORTOLAN_BACKEND {

inline constexpr int kWaveSize = PORTOLAN_EMU_WAVE;

template <typename T, int kCount>
using SharedArray = emu::SharedArray<T, kCount>;
struct NoShared {};

inline int ThreadIndex() { return emu::Emulator::Running().work_item(); }
inline int64_t BlockIndex() { return emu::Emulator::Running().block().x; }
inline int64_t BlockCount() { return emu::Emulator::Running().launch().grid.x; }

inline int PopCount(uint64_t bits) { return std::popcount(bits); }
inline int CountTrailingZeros(uint64_t bits) { return std::countr_zero(bits); }

inline void SyncBlock(PORTOLAN_CALL_SITE) { emu::Emulator::Running().BlockBarrier(where); }
// Orders the shared-memory accesses of the group's lanes.
template <int kLanes = kWaveSize>
void SyncWave(PORTOLAN_CALL_SITE) {
  emu::Emulator::Running().Rendezvous(emu::WaveOperation::kSync, 0, kLanes, where);
}

inline uint64_t BallotBits(bool vote, emu::SourceLine where) {
  return emu::Emulator::Running().Rendezvous(emu::WaveOperation::kBallot, vote ? 1 : 0, kWaveSize, where).ballot;
}

template <int kLanes, typename T>
T ShuffleLane(T value, int source, emu::SourceLine where) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  auto& emulator = emu::Emulator::Running();
  const int group = emulator.lane() / kLanes * kLanes;
  const bool in_group = source >= 0 && source < kLanes;
  bits = emulator.Shuffle(bits, in_group ? group + source : -1, kLanes, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <int kMask, int kLanes, typename T>
T ShuffleXorLane(T value, emu::SourceLine where) {
  return ShuffleLane<kLanes>(value, (emu::Emulator::Running().lane() % kLanes) ^ kMask, where);
}

// Relaxed, on global memory; returns the value before.
template <typename T>
T AtomicAdd(T* address, T addend) {
  return std::atomic_ref<T>(*address).fetch_add(addend, std::memory_order_relaxed);
}
// What was written before it is seen by whoever sees what is written after it, in the whole device.
inline void DeviceFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// kWidth values from global memory; the address must be a multiple of their common width.
template <int kWidth, typename T>
Vec<T, kWidth> LoadVec(const T* address, PORTOLAN_CALL_SITE) {
  emu::CheckAlignment(address, sizeof(T) * kWidth, where);
  Vec<T, kWidth> vec;
  std::memcpy(vec.value, address, sizeof vec.value);
  return vec;
}
template <int kWidth, typename T>
void StoreVec(T* address, const Vec<T, kWidth>& vec, PORTOLAN_CALL_SITE) {
  emu::CheckAlignment(address, sizeof(T) * kWidth, where);
  std::memcpy(address, vec.value, sizeof vec.value);
}

inline float Exp(float x) { return std::exp(x); }
inline float Log(float x) { return std::log(x); }
inline float Sqrt(float x) { return std::sqrt(x); }
inline float Floor(float x) { return std::floor(x); }
inline float Erf(float x) { return std::erf(x); }

// Scratch memory of the device for the launches that follow.
template <typename T>
class Scratch {
 public:
  Scratch(Stream, int64_t count) : data_(static_cast<size_t>(count)) {}
  T* data() { return data_.data(); }

 private:
  std::vector<T> data_;
};
template <typename T>
void CopyToHost(Stream, const T* from, int64_t count, T* to) {
  std::copy_n(from, count, to);
}
template <typename T>
void CopyToDevice(Stream, const T* from, int64_t count, T* to) {
  std::copy_n(from, count, to);
}

template <typename Kernel>
void Launch(Stream, int64_t blocks, const Kernel& kernel) {
  static_assert(Kernel::kThreads % kWaveSize == 0, "a block is a multiple of the wave");
  struct Bound {
    const Kernel& kernel;
    typename Kernel::Shared shared;
  };
  auto bound = std::make_unique<Bound>(Bound{kernel, {}});  // the histories of shared elements are too big for a stack
  emu::Launch launch;
  launch.kernel = Kernel::kName;
  launch.grid.x = blocks;
  launch.threads = Kernel::kThreads;
  launch.wave_size = kWaveSize;
  launch.body = [](void* argument) {
    auto& self = *static_cast<Bound*>(argument);
    self.kernel(self.shared);
  };
  launch.argument = bound.get();
  emu::Emulator::OfThisThread().Run(launch);
}

}  // namespace portolan::device::PORTOLAN_BACKEND
