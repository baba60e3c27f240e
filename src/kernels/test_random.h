#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace portolan::kernels {

// `count` numbers, uniform in [-1, 1).
inline std::vector<float> RandomNumbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = value(random);
  return numbers;
}

}  // namespace portolan::kernels
