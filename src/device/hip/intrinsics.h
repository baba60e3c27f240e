#pragma once

// Included by device/gpu_intrinsics.h only, which says what everything means. Here: CDNA, compiled by
// `clang++ -x hip -nogpuinc -nogpulib --cuda-device-only`: the compiler's builtins and nothing of ROCm, so that every
// kernel can be compiled, and its resources counted, on a machine without it.

#include "device/host_device.h"
#include "device/stream.h"
#include "device/vec.h"

#define PORTOLAN_DEVICE __attribute__((device)) __attribute__((always_inline))
#define PORTOLAN_CALL_SITE ::portolan::device::hip::CallSite where = {}

namespace portolan::device::hip {

inline constexpr int kWaveSize = 64;

struct CallSite {};
struct NoShared {};

// Within the block: what was written before is seen after it.
PORTOLAN_DEVICE inline void SyncBlock(CallSite = {}) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// The lanes of a wave run together: only the compiler must be kept from moving accesses across.
template <int kLanes = kWaveSize>
PORTOLAN_DEVICE void SyncWave(CallSite = {}) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

template <typename T, int kCount>
struct alignas(16) SharedArray {
  T data[kCount];

  PORTOLAN_DEVICE T& operator[](int64_t index) { return data[index]; }
  template <int kWidth>
  PORTOLAN_DEVICE Vec<T, kWidth> LoadVec(int64_t index) const {
    return *reinterpret_cast<const Vec<T, kWidth>*>(data + index);
  }
  template <int kWidth>
  PORTOLAN_DEVICE void StoreVec(int64_t index, const Vec<T, kWidth>& vec) {
    *reinterpret_cast<Vec<T, kWidth>*>(data + index) = vec;
  }
  PORTOLAN_DEVICE T AtomicAdd(int64_t index, T addend) {
    return __hip_atomic_fetch_add(data + index, addend, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
};

PORTOLAN_DEVICE inline int ThreadIndex() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
PORTOLAN_DEVICE inline int64_t BlockIndex() { return __builtin_amdgcn_workgroup_id_x(); }
PORTOLAN_DEVICE inline int64_t BlockCount() {
  return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}

PORTOLAN_DEVICE inline int PopCount(uint64_t bits) { return __builtin_popcountll(bits); }
PORTOLAN_DEVICE inline int CountTrailingZeros(uint64_t bits) { return __builtin_ctzll(bits); }
PORTOLAN_DEVICE inline uint64_t BallotBits(bool vote, CallSite) { return __builtin_amdgcn_ballot_w64(vote); }

// Applies a 32-bit lane operation to each half of `value`.
template <typename Operation, typename T>
PORTOLAN_DEVICE T ByHalves(T value, Operation operation) {
  struct Words {
    int word[sizeof(T) / 4];
  };
  Words words = __builtin_bit_cast(Words, value);
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) words.word[i] = operation(words.word[i]);
  return __builtin_bit_cast(T, words);
}

struct Permute {
  int byte;  // four times the source lane
  PORTOLAN_DEVICE int operator()(int word) const { return __builtin_amdgcn_ds_bpermute(byte, word); }
};
template <int kLanes, typename T>
PORTOLAN_DEVICE T ShuffleLane(T value, int source, CallSite) {
  const int lane = static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
  return ByHalves(value, Permute{((lane & ~(kLanes - 1)) + source) * 4});
}

// Exchange by an exclusive-or of the lane: DPP where the pattern has one, which costs no LDS access (quad_perm for 1
// and 2, row_ror:8 for 8); ds_swizzle in bit mode up to 16; ds_bpermute for 32. ("AMD Instinct MI300" instruction set
// reference guide, sections on DPP and DS_SWIZZLE_B32.)
template <int kMask>
struct Exchange {
  int other_lane_byte;
  PORTOLAN_DEVICE int operator()(int word) const {
    if constexpr (kMask == 1) return __builtin_amdgcn_mov_dpp(word, 0xb1, 0xf, 0xf, true);
    if constexpr (kMask == 2) return __builtin_amdgcn_mov_dpp(word, 0x4e, 0xf, 0xf, true);
    if constexpr (kMask == 8) return __builtin_amdgcn_mov_dpp(word, 0x128, 0xf, 0xf, true);
    if constexpr (kMask < 32) return __builtin_amdgcn_ds_swizzle(word, (kMask << 10) | 0x1f);
    return __builtin_amdgcn_ds_bpermute(other_lane_byte, word);
  }
};
template <int kMask, int kLanes, typename T>
PORTOLAN_DEVICE T ShuffleXorLane(T value, CallSite) {
  int other = 0;
  if constexpr (kMask >= 32) {
    other = static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u))) ^ kMask;
  }
  return ByHalves(value, Exchange<kMask>{other * 4});
}

template <typename T>
PORTOLAN_DEVICE T AtomicAdd(T* address, T addend) {
  return __hip_atomic_fetch_add(address, addend, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
PORTOLAN_DEVICE inline void DeviceFence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

template <int kWidth, typename T>
PORTOLAN_DEVICE Vec<T, kWidth> LoadVec(const T* address, CallSite = {}) {
  return *reinterpret_cast<const Vec<T, kWidth>*>(address);
}
template <int kWidth, typename T>
PORTOLAN_DEVICE void StoreVec(T* address, const Vec<T, kWidth>& vec, CallSite = {}) {
  *reinterpret_cast<Vec<T, kWidth>*>(address) = vec;
}

PORTOLAN_DEVICE inline float Exp(float x) { return __builtin_expf(x); }
PORTOLAN_DEVICE inline float Log(float x) { return __builtin_logf(x); }
PORTOLAN_DEVICE inline float Sqrt(float x) { return __builtin_sqrtf(x); }
PORTOLAN_DEVICE inline float Floor(float x) { return __builtin_floorf(x); }
// The compiler has no erf without a device library. Abramowitz and Stegun 7.1.26: absolute error below 1.5e-7.
PORTOLAN_DEVICE inline float Erf(float x) {
  const float magnitude = __builtin_fabsf(x);
  const float t = 1.0f / (1.0f + 0.3275911f * magnitude);
  const float polynomial =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return __builtin_copysignf(1.0f - polynomial * Exp(-magnitude * magnitude), x);
}

// The host's side of HIP needs the runtime and is not built here: these are declared so that a kernel's source
// compiles, and Launch makes the compiler emit the kernel.
template <typename T>
class Scratch {
 public:
  Scratch(Stream stream, int64_t count);
  T* data() const;
};
template <typename T>
void CopyToHost(Stream stream, const T* from, int64_t count, T* to);
template <typename T>
void CopyToDevice(Stream stream, const T* from, int64_t count, T* to);

template <typename Kernel>
__attribute__((global)) __attribute__((amdgpu_flat_work_group_size(Kernel::kThreads, Kernel::kThreads))) void Entry(
    const Kernel kernel) {
  __attribute__((shared)) typename Kernel::Shared shared;
  kernel(shared);
}

template <typename Kernel>
void Launch(Stream, int64_t, const Kernel&) {
  auto* entry = &Entry<Kernel>;
  (void)entry;
}

}  // namespace portolan::device::hip
