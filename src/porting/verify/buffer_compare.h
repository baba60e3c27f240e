#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace portolan {

// What the elements of a buffer are, as the kernels' parameters say.
struct ElementType {
  char letter = '?';  // 'f' float, 'd' double, 'h' half, 'b' bfloat16, 'i' integers, '?' unknown
  int bytes = 1;
};

// How memory that nobody has written looks in each of two runs.
struct FillBytes {
  uint8_t expected = 0;
  uint8_t seen = 0;
};

struct BufferDifference {
  int64_t elements = 0;  // that differ
  int64_t first = 0;     // index of the first of them
  std::string expected;  // its values
  std::string seen;
  double largest_relative = 0;  // of the floating-point elements within the tolerance
  bool permuted = false;        // the same elements in another order
};

// Compares `bytes` bytes. Floating-point elements agree within 1e-3 (float), 1e-9 (double), 2e-2 (half, bfloat16) of
// the larger of their magnitude and the buffer's largest: sums in another order differ by less, a lane too few or too
// many by more. Elements of an unknown type of which both sides read as ordinary floats are compared as such. Bytes
// that still are as both were filled agree.
BufferDifference CompareBuffers(const uint8_t* expected, const uint8_t* seen, size_t bytes, ElementType type,
                                FillBytes fill);

}  // namespace portolan
