#pragma once

#include <array>
#include <cstdint>

namespace portolan::gpu {

// Where a work-item stands: the return addresses of its calls, outermost first. Two work-items stand at the same place
// when they do so along the same calls; what comes first in the program compares smaller, as the programs are compiled
// without reordering of blocks.
struct Place {
  static constexpr int kDepth = 10;
  std::array<uintptr_t, kDepth> address{};
  int depth = 0;

  uintptr_t innermost() const { return depth == 0 ? 0 : address[static_cast<size_t>(depth - 1)]; }

  friend bool operator==(const Place& a, const Place& b) {
    if (a.depth != b.depth) return false;
    for (int i = a.depth - 1; i >= 0; --i) {
      if (a.address[static_cast<size_t>(i)] != b.address[static_cast<size_t>(i)]) return false;
    }
    return true;
  }
  friend bool operator<(const Place& a, const Place& b) {
    for (int i = 0; i < a.depth && i < b.depth; ++i) {
      const auto at = static_cast<size_t>(i);
      if (a.address[at] != b.address[at]) return a.address[at] < b.address[at];
    }
    return a.depth < b.depth;
  }
};

// Follows the frame pointers from `frame` (__builtin_frame_address(0) of the function whose caller is the innermost)
// up to the frame that lies at or above `stack_top`. Frames deeper than Place::kDepth lose their middle.
inline void CapturePlace(const void* frame, const void* base_frame, Place* place) {
  std::array<uintptr_t, 64> found;
  int count = 0;
  auto fp = static_cast<const uintptr_t*>(frame);
  while (count < 64 && fp != nullptr && fp < base_frame) {
    found[static_cast<size_t>(count++)] = fp[1];
    const auto next = reinterpret_cast<const uintptr_t*>(fp[0]);
    if (next <= fp) break;
    fp = next;
  }
  place->depth = count < Place::kDepth ? count : Place::kDepth;
  for (int i = 0; i < place->depth; ++i) {
    place->address[static_cast<size_t>(i)] = found[static_cast<size_t>(count - 1 - i)];
  }
  if (count > Place::kDepth) place->address[Place::kDepth - 1] = found[0];
}

}  // namespace portolan::gpu
