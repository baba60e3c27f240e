#pragma once

#include <array>
#include <vector>

#include "plan/shard_cost.h"

namespace portolan {

constexpr size_t kLoadParts = 6;  // forward, sort, update, sent, reduced, memory
using LoadParts = std::array<double, kLoadParts>;
constexpr size_t kSentLoad = 3, kMemoryLoad = 5;

// One way to split a table: per-rank costs of its first and its other pieces. A piece is a shard on one device or,
// split inside nodes, a node's shards.
struct SplitLoad {
  TableSplit split;
  int pieces = 1;
  int span = 1;  // ranks of a piece
  bool on_nodes = false;
  LoadParts first{}, other{};  // weighted seconds of one rank
  double received = 0;         // weighted seconds of every rank
  double bytes = 0;            // of one rank
};

// kCoarse: the 24-norm over the ranks, memory among the parts. kFine: the 192-norm, without memory.
enum class Smoothness { kCoarse, kFine };

// The loads of all ranks and the sum over the parts of their largest, each maximum as a p-norm over the ranks: every
// move of a loaded rank counts, and one is priced in constant time from the sums of p-th powers. What is received is
// one more rank of the part that is sent. Pieces are numbered by device or node; loads are weighted seconds.
class SmoothLoads {
 protected:
  explicit SmoothLoads(int devices)
      : loads_(static_cast<size_t>(devices)),
        powers_(static_cast<size_t>(devices)),
        bytes_(static_cast<size_t>(devices), 0.0) {}

  // Brings the scale to the loads of now, and the powers to the scale.
  void Normalise(Smoothness smoothness);
  // Brings the powers of a piece's ranks, and the sums, up to date.
  void Refresh(const SplitLoad& option, int at);
  // The smooth objective; sets how it grows with each sum of powers.
  double Objective();
  // Adds or takes away one piece, without the powers.
  void Put(const SplitLoad& option, size_t piece, int at, double sign);
  // Takes one piece away.
  void Lift(const SplitLoad& option, size_t piece, int at);
  // What a piece would add to the objective at a place, to first order in the sums of powers.
  double Score(const SplitLoad& option, size_t piece, int at) const;
  // The same for piece i of one table at rank `here` and piece j of another at `there` that change places.
  double SwapScore(const SplitLoad& from, size_t i, int here, const SplitLoad& to, size_t j, int there) const;
  // What the powers of two ranks count for when they hold these loads, to first order.
  double PairScore(const LoadParts& a, const LoadParts& b) const;
  // Brings the powers of one rank, and the sums, up to date.
  void RankPowers(size_t rank);
  // The rank with the most of a part.
  size_t Fullest(size_t part) const;

  std::vector<LoadParts> loads_, powers_;
  std::vector<double> bytes_;
  LoadParts scale_{}, sums_{}, slope_{};
  double received_ = 0;

 private:
  double Power(double x) const;

  int squarings_ = 0;   // of the 24th power
  bool stale_ = false;  // sums_
};

}  // namespace portolan
