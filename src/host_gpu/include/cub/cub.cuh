#pragma once

// The commonly used part of CUB: what each function returns, by the plainest way to get it.

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "cub/block.cuh"
#include "cub/device.cuh"
