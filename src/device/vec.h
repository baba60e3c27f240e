#pragma once

namespace portolan::device {

// kCount values that are loaded and stored together, aligned to their common width (16 bytes is the widest that every
// GPU has): global_load_dwordx4, ld.global.v4.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Vec {
  static_assert((kCount & (kCount - 1)) == 0 && sizeof(T) * kCount <= 16, "a vector is 16 bytes at most");
  T value[kCount];
};

}  // namespace portolan::device
