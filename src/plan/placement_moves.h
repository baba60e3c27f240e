#pragma once

#include <cstdint>
#include <vector>

#include "plan/smooth_loads.h"

namespace portolan {

// A table whose split and places are open.
struct OpenTable {
  size_t table = 0;
  std::vector<SplitLoad> options;
  size_t chosen = 0;
  std::vector<int> places;  // device or node of each piece
  double heat = 0;          // largest share of a rank's mean load
};

// One piece of a table.
struct Piece {
  OpenTable* open;
  size_t index;  // of the table's pieces
  int from;      // rank
  double size;
  const LoadParts* parts;
};

// Moves of the open tables' pieces that lower the smooth objective, within `memory` a rank.
class PlacementMoves : protected SmoothLoads {
 protected:
  static constexpr double kLeastGain = 1e-7;  // relative, of a move that counts

  PlacementMoves(int devices, Bytes memory) : SmoothLoads(devices), devices_(devices), memory_(memory.value) {}

  // Places the pieces of an option one after the other where each adds least; false when memory forbids it.
  bool Deal(const SplitLoad& option, std::vector<int>& places);
  // The best split and places of one table, the others as they are; whether it improved.
  bool Replace(OpenTable& open);
  // Swaps pieces of the rank that leads in part `part` with pieces of other ranks.
  bool SwapFromFullest(size_t part);
  // Deals the pieces of pairs of ranks anew, the fullest rank of a part with a random other one or two random ones:
  // each pair in the best of all ways to deal its largest pieces.
  void DealPairs();
  // Passes of the two before over all tables until none improves.
  void Descend(Smoothness smoothness);

  const int devices_;
  double memory_;
  std::vector<OpenTable> open_;
  uint32_t random_ = 1;  // state of Random

 private:
  void DealTwo(size_t a, size_t b);
  size_t Random(size_t below);
  void Trade(OpenTable& a, size_t i, OpenTable& b, size_t j);

  std::vector<bool> taken_;  // by the pieces dealt so far
};

}  // namespace portolan
