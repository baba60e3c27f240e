#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace portolan {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): the finalizer, a
// bijection of 64-bit words.
inline uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// floor(x * bound / 2^64): an even x gives an even value in [0, bound), within bound / 2^64.
inline uint64_t ScaleBits(uint64_t x, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(x) * bound) >> 64);
}

// A random order of 0 .. count - 1 (Fisher-Yates), the same for the same seed on every machine.
inline std::vector<int64_t> RandomOrder(int64_t count, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  uint64_t state = MixBits(seed);
  for (int64_t i = count - 1; i > 0; --i) {
    state = MixBits(state);
    std::swap(order[i], order[ScaleBits(state, static_cast<uint64_t>(i) + 1)]);
  }
  return order;
}

// FNV-1a (Fowler, Noll, Vo; offset basis and prime of the 64-bit version).
inline uint64_t HashBytes(const char* bytes, size_t count) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3ULL;
  return hash;
}

}  // namespace portolan
