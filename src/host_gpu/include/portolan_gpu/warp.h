#pragma once

// Barriers, votes and shuffles. A port's wave is AMD's: no mask says who takes part, those do that are at the place. A
// mask that a plain renaming leaves in a call only limits a vote, as HIP's functions do.

#include <string.h>

#include "portolan_gpu/core.h"

inline constexpr int warpSize = PORTOLAN_GPU_WAVE;

// Read by the library: which wave the program was compiled for.
extern "C" {
__attribute__((weak)) extern const int portolan_gpu_program_wave;
const int portolan_gpu_program_wave = PORTOLAN_GPU_WAVE;
}

namespace portolan::gpu {

#if PORTOLAN_GPU_WAVE == 32
using LaneBits = unsigned int;
#else
using LaneBits = unsigned long long;
#endif
// The result of a vote: HIP's has 64 bits on every wave.
#ifdef PORTOLAN_GPU_HIP
using VoteBits = unsigned long long;
#else
using VoteBits = LaneBits;
#endif

inline constexpr bool kMasksBind = PORTOLAN_GPU_WAVE == 32;
// The lanes that an exchange waits for.
PORTOLAN_INLINE uint64_t Named(uint64_t mask) { return kMasksBind ? mask : 0; }

template <typename T>
PORTOLAN_INLINE uint64_t ToBits(const T& value) {
  static_assert(sizeof(T) <= 8, "a lane hands in 8 bytes at a time");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
PORTOLAN_INLINE T FromBits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// `source` as a lane of the wave.
template <typename T>
PORTOLAN_INLINE T ReadLane(const char* operation, uint64_t mask, T value, unsigned source) {
  if constexpr (sizeof(T) > 8) {
    T result = value;
    auto* out = reinterpret_cast<char*>(&result);
    const auto* in = reinterpret_cast<const char*>(&value);
    for (size_t done = 0; done < sizeof(T); done += 8) {
      const size_t part = sizeof(T) - done < 8 ? sizeof(T) - done : 8;
      uint64_t bits = 0;
      __builtin_memcpy(&bits, in + done, part);
      bits = ReadLane(operation, mask, bits, source);
      __builtin_memcpy(out + done, &bits, part);
    }
    return result;
  } else {
    const Exchanged all = Exchange(operation, Named(mask), ToBits(value));
    if (source == Lane()) return value;
    const bool takes_part = ((all.active >> source) & 1) != 0;
    return FromBits<T>(takes_part ? all.value[source] : ReadInactiveLane(operation, source));
  }
}

// `counted`: the lanes whose votes count, those that take part aside.
PORTOLAN_INLINE uint64_t Vote(const char* operation, uint64_t named, uint64_t counted, bool vote, uint64_t* active) {
  const Exchanged all = Exchange(operation, named, vote ? 1 : 0);
  uint64_t bits = 0;
  counted &= all.active;
  for (uint64_t rest = counted; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    bits |= all.value[lane] << lane;
  }
  *active = counted;
  return bits;
}

PORTOLAN_INLINE uint64_t MaskedVote(const char* operation, uint64_t mask, bool vote, uint64_t* active) {
  return Vote(operation, Named(mask), mask, vote, active);
}

PORTOLAN_INLINE unsigned Own(int width) { return Lane() & static_cast<unsigned>(~(width - 1)); }

}  // namespace portolan::gpu

PORTOLAN_INLINE void __syncthreads() { portolan::gpu::SyncBlock(0); }
PORTOLAN_INLINE int __syncthreads_count(int vote) { return portolan::gpu::SyncBlock(vote != 0); }
PORTOLAN_INLINE int __syncthreads_or(int vote) { return portolan::gpu::SyncBlock(vote != 0) != 0; }
PORTOLAN_INLINE int __syncthreads_and(int vote) { return portolan::gpu::SyncBlock(vote == 0) == 0; }
PORTOLAN_INLINE void __syncwarp(unsigned long long mask = portolan::gpu::LaneBits(-1)) {
  portolan::gpu::SyncWave(portolan::gpu::Named(mask));
}
PORTOLAN_INLINE portolan::gpu::VoteBits __activemask() {
  return static_cast<portolan::gpu::VoteBits>(portolan::gpu::Exchange("__activemask", 0, 0).active);
}

PORTOLAN_INLINE portolan::gpu::VoteBits __ballot_sync(unsigned long long mask, int vote) {
  uint64_t active = 0;
  return static_cast<portolan::gpu::VoteBits>(portolan::gpu::MaskedVote("__ballot_sync", mask, vote != 0, &active));
}
PORTOLAN_INLINE int __any_sync(unsigned long long mask, int vote) {
  uint64_t active = 0;
  return portolan::gpu::MaskedVote("__any_sync", mask, vote != 0, &active) != 0;
}
PORTOLAN_INLINE int __all_sync(unsigned long long mask, int vote) {
  uint64_t active = 0;
  return portolan::gpu::MaskedVote("__all_sync", mask, vote != 0, &active) == active;
}
PORTOLAN_INLINE int __uni_sync(unsigned long long mask, int vote) {
  uint64_t active = 0;
  const uint64_t votes = portolan::gpu::MaskedVote("__uni_sync", mask, vote != 0, &active);
  return votes == 0 || votes == active;
}
PORTOLAN_INLINE portolan::gpu::VoteBits __ballot(int vote) {
  uint64_t active = 0;
  return static_cast<portolan::gpu::VoteBits>(portolan::gpu::Vote("__ballot", 0, ~uint64_t{0}, vote != 0, &active));
}
PORTOLAN_INLINE int __any(int vote) {
  uint64_t active = 0;
  return portolan::gpu::Vote("__any", 0, ~uint64_t{0}, vote != 0, &active) != 0;
}
PORTOLAN_INLINE int __all(int vote) {
  uint64_t active = 0;
  return portolan::gpu::Vote("__all", 0, ~uint64_t{0}, vote != 0, &active) == active;
}

// The four shuffles, with and without a mask: the lane that is read, as CUDA C++ Programming Guide 12.6, 10.22, and
// HIP's amd_warp_functions.h have it.
#define PORTOLAN_SHUFFLES(SUFFIX, MASK_PARAMETER, MASK)                                                           \
  template <typename T>                                                                                           \
  PORTOLAN_INLINE T __shfl##SUFFIX(MASK_PARAMETER T value, int source, int width = warpSize) {                    \
    const unsigned lane = portolan::gpu::Own(width) + (static_cast<unsigned>(source) & (width - 1));              \
    return portolan::gpu::ReadLane("__shfl" #SUFFIX, MASK, value, lane);                                          \
  }                                                                                                               \
  template <typename T>                                                                                           \
  PORTOLAN_INLINE T __shfl_up##SUFFIX(MASK_PARAMETER T value, unsigned delta, int width = warpSize) {             \
    const int lane = static_cast<int>(portolan::gpu::Lane());                                                     \
    const int source = lane - static_cast<int>(delta);                                                            \
    const bool own = source < static_cast<int>(portolan::gpu::Own(width));                                        \
    return portolan::gpu::ReadLane("__shfl_up" #SUFFIX, MASK, value, static_cast<unsigned>(own ? lane : source)); \
  }                                                                                                               \
  template <typename T>                                                                                           \
  PORTOLAN_INLINE T __shfl_down##SUFFIX(MASK_PARAMETER T value, unsigned delta, int width = warpSize) {           \
    const unsigned lane = portolan::gpu::Lane();                                                                  \
    const bool own = (lane & static_cast<unsigned>(width - 1)) + delta >= static_cast<unsigned>(width);           \
    return portolan::gpu::ReadLane("__shfl_down" #SUFFIX, MASK, value, own ? lane : lane + delta);                \
  }                                                                                                               \
  template <typename T>                                                                                           \
  PORTOLAN_INLINE T __shfl_xor##SUFFIX(MASK_PARAMETER T value, int bits, int width = warpSize) {                  \
    const unsigned lane = portolan::gpu::Lane();                                                                  \
    const unsigned source = lane ^ static_cast<unsigned>(bits);                                                   \
    const bool own = source >= portolan::gpu::Own(width) + static_cast<unsigned>(width);                          \
    return portolan::gpu::ReadLane("__shfl_xor" #SUFFIX, MASK, value, own ? lane : source);                       \
  }
PORTOLAN_SHUFFLES(, , 0)
#define PORTOLAN_MASK unsigned long long mask,
PORTOLAN_SHUFFLES(_sync, PORTOLAN_MASK, mask)
#undef PORTOLAN_MASK
#undef PORTOLAN_SHUFFLES

template <typename T>
PORTOLAN_INLINE portolan::gpu::VoteBits __match_any_sync(unsigned long long mask, T value) {
  const auto all =
      portolan::gpu::Exchange("__match_any_sync", portolan::gpu::Named(mask), portolan::gpu::ToBits(value));
  uint64_t same = 0;
  for (uint64_t rest = all.active & mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    if (all.value[lane] == portolan::gpu::ToBits(value)) same |= uint64_t{1} << lane;
  }
  return static_cast<portolan::gpu::VoteBits>(same);
}
template <typename T>
PORTOLAN_INLINE portolan::gpu::VoteBits __match_all_sync(unsigned long long mask, T value, int* all_same) {
  const auto all =
      portolan::gpu::Exchange("__match_all_sync", portolan::gpu::Named(mask), portolan::gpu::ToBits(value));
  bool same = true;
  for (uint64_t rest = all.active & mask; rest != 0; rest &= rest - 1) {
    same = same && all.value[__builtin_ctzll(rest)] == portolan::gpu::ToBits(value);
  }
  *all_same = same ? 1 : 0;
  return static_cast<portolan::gpu::VoteBits>(same ? all.active & mask : 0);
}
#define PORTOLAN_WAVE_REDUCE(NAME, EXPRESSION)                                                                 \
  template <typename T>                                                                                        \
  PORTOLAN_INLINE T NAME(unsigned long long mask, T value) {                                                   \
    const auto all = portolan::gpu::Exchange(#NAME, portolan::gpu::Named(mask), portolan::gpu::ToBits(value)); \
    bool first = true;                                                                                         \
    T a = value;                                                                                               \
    for (uint64_t rest = all.active & mask; rest != 0; rest &= rest - 1) {                                     \
      const T b = portolan::gpu::FromBits<T>(all.value[__builtin_ctzll(rest)]);                                \
      a = first ? b : static_cast<T>(EXPRESSION);                                                              \
      first = false;                                                                                           \
    }                                                                                                          \
    return a;                                                                                                  \
  }
PORTOLAN_WAVE_REDUCE(__reduce_add_sync, a + b)
PORTOLAN_WAVE_REDUCE(__reduce_min_sync, b < a ? b : a)
PORTOLAN_WAVE_REDUCE(__reduce_max_sync, a < b ? b : a)
PORTOLAN_WAVE_REDUCE(__reduce_and_sync, a& b)
PORTOLAN_WAVE_REDUCE(__reduce_or_sync, a | b)
PORTOLAN_WAVE_REDUCE(__reduce_xor_sync, a ^ b)
#undef PORTOLAN_WAVE_REDUCE

// AMD's own words, which HIP sources use.
PORTOLAN_INLINE unsigned __lane_id() { return portolan::gpu::Lane(); }
PORTOLAN_INLINE void __threadfence() {}
// Code from before __syncwarp passes values between the lanes of a wave with nothing but this, and counts on their
// being in step.
PORTOLAN_INLINE void __threadfence_block() { portolan::gpu::FenceBlock(); }
PORTOLAN_INLINE void __threadfence_system() {}
PORTOLAN_INLINE void __nanosleep(unsigned) { portolan::gpu::Yield(); }
#ifdef PORTOLAN_GPU_HIP
PORTOLAN_INLINE int __builtin_amdgcn_readfirstlane(int value) {
  const auto all = portolan::gpu::Exchange("readfirstlane", 0, portolan::gpu::ToBits(value));
  return portolan::gpu::FromBits<int>(all.value[__builtin_ctzll(all.active)]);
}
PORTOLAN_INLINE unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned add) {
  const unsigned lane = portolan::gpu::Lane();
  return add + static_cast<unsigned>(__builtin_popcount(lane >= 32 ? mask : mask & ((1u << lane) - 1)));
}
PORTOLAN_INLINE unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned add) {
  const unsigned lane = portolan::gpu::Lane();
  return add + (lane < 32 ? 0 : static_cast<unsigned>(__builtin_popcount(mask & ((1u << (lane - 32)) - 1))));
}
PORTOLAN_INLINE int __builtin_amdgcn_ds_bpermute(int address, int value) {
  return portolan::gpu::ReadLane("ds_bpermute", 0, value, (static_cast<unsigned>(address) >> 2) & (warpSize - 1));
}
PORTOLAN_INLINE int __builtin_amdgcn_readlane(int value, int lane) {
  return portolan::gpu::ReadLane("readlane", 0, value, static_cast<unsigned>(lane));
}
PORTOLAN_INLINE uint64_t __builtin_amdgcn_read_exec() { return portolan::gpu::Exchange("exec", 0, 0).active; }
PORTOLAN_INLINE void __builtin_amdgcn_wave_barrier() { portolan::gpu::SyncWave(0); }
PORTOLAN_INLINE void __builtin_amdgcn_fence(int, const char*) {}
PORTOLAN_INLINE void __builtin_amdgcn_s_barrier() { portolan::gpu::SyncBlock(0); }
PORTOLAN_INLINE void __builtin_amdgcn_s_sleep(int) { portolan::gpu::Yield(); }
#endif
