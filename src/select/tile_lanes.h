#pragma once

#include <span>
#include <vector>

#include "select/tile_model.h"

namespace portolan {

// Kernels laid out so that a processor prices several at once: blocks of kLanes kernels, one row of a block a field.
class TileLanes {
 public:
  TileLanes() = default;
  explicit TileLanes(std::vector<TileKernel> kernels);

  // seconds[i] = EvaluateTileTotal(problem, kernel(i)), to the last bit; `seconds` has size() entries. No allocation.
  void ScoreAll(const TileProblem& problem, std::span<double> seconds) const;

  size_t size() const { return kernels_.size(); }
  const TileKernel& kernel(size_t i) const { return kernels_[i]; }

 private:
  std::vector<TileKernel> kernels_;
  std::vector<double> blocks_;
};

}  // namespace portolan
