#include "plan/placement_moves.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace portolan {
namespace {

constexpr int kPasses = 6;
constexpr int kLeastPairRounds = 50, kPairRounds = 150;  // a rank, between them twice as many as there are others
constexpr int kRefresh = 500;                            // rounds between two normalisations
constexpr size_t kPairPieces = 12;                       // of two ranks that are dealt anew
constexpr double kPairLimit = 1.01;                      // of the largest loads: fuller ranks are not looked at

}  // namespace

bool PlacementMoves::Deal(const SplitLoad& option, std::vector<int>& places) {
  places.clear();
  taken_.assign(static_cast<size_t>(devices_), false);
  const int bins = devices_ / option.span;
  for (int piece = 0; piece < option.pieces; ++piece) {
    int best = -1;
    double best_score = 0;
    for (int at = 0; at < bins; ++at) {
      if (taken_[static_cast<size_t>(at)] || bytes_[static_cast<size_t>(at * option.span)] + option.bytes > memory_)
        continue;
      const double score = Score(option, static_cast<size_t>(piece), at);
      if (best >= 0 && score >= best_score) continue;
      best = at;
      best_score = score;
    }
    if (best < 0) {
      for (size_t i = 0; i < places.size(); ++i) Lift(option, i, places[i]);
      return false;
    }
    Put(option, static_cast<size_t>(piece), best, 1.0);
    Refresh(option, best);
    places.push_back(best);
    taken_[static_cast<size_t>(best)] = true;
  }
  return true;
}

bool PlacementMoves::Replace(OpenTable& open) {
  const double before = Objective();
  const size_t old_choice = open.chosen;
  const std::vector<int> old_places = open.places;
  const auto lift_all = [&](const SplitLoad& option, const std::vector<int>& places) {
    for (size_t i = 0; i < places.size(); ++i) Lift(option, i, places[i]);
    received_ -= option.received;
  };
  const auto put_all = [&](const SplitLoad& option, const std::vector<int>& places) {
    for (size_t i = 0; i < places.size(); ++i) {
      Put(option, i, places[i], 1.0);
      Refresh(option, places[i]);
    }
    received_ += option.received;
  };
  lift_all(open.options[old_choice], old_places);
  double best = before * (1 - kLeastGain);
  bool improved = false;
  std::vector<int> places;
  for (size_t o = 0; o < open.options.size(); ++o) {
    const SplitLoad& option = open.options[o];
    if (option.pieces * option.span > devices_) continue;
    Objective();  // slopes without this table
    if (!Deal(option, places)) continue;
    received_ += option.received;
    const double now = Objective();
    lift_all(option, places);
    if (now >= best) continue;
    best = now;
    improved = true;
    open.chosen = o;
    open.places = places;
  }
  put_all(open.options[open.chosen], open.places);
  return improved;
}

bool PlacementMoves::SwapFromFullest(size_t part) {
  const size_t fullest = Fullest(part);
  double before = Objective();
  bool improved = false;
  for (OpenTable& a : open_) {
    const SplitLoad& from = a.options[a.chosen];
    for (size_t i = 0; i < a.places.size(); ++i) {
      if (from.on_nodes || a.places[i] != static_cast<int>(fullest)) continue;
      for (OpenTable& b : open_) {
        const SplitLoad& to = b.options[b.chosen];
        if (&a == &b || to.on_nodes) continue;
        if (std::find(b.places.begin(), b.places.end(), a.places[i]) != b.places.end()) continue;
        for (size_t j = 0; j < b.places.size(); ++j) {
          const int there = b.places[j];
          if (std::find(a.places.begin(), a.places.end(), there) != a.places.end()) continue;
          if (SwapScore(from, i, a.places[i], to, j, there) >= 0) continue;
          if (bytes_[static_cast<size_t>(there)] + from.bytes - to.bytes > memory_) continue;
          if (bytes_[fullest] + to.bytes - from.bytes > memory_) continue;
          Trade(a, i, b, j);
          const double now = Objective();
          if (now < before * (1 - kLeastGain)) {
            before = now;
            improved = true;
            break;
          }
          Trade(a, i, b, j);
          Objective();
        }
        if (a.places[i] != static_cast<int>(fullest)) break;
      }
    }
  }
  return improved;
}

void PlacementMoves::Trade(OpenTable& a, size_t i, OpenTable& b, size_t j) {
  const SplitLoad& from = a.options[a.chosen];
  const SplitLoad& to = b.options[b.chosen];
  Put(from, i, a.places[i], -1.0);
  Put(to, j, b.places[j], -1.0);
  std::swap(a.places[i], b.places[j]);
  Put(from, i, a.places[i], 1.0);
  Put(to, j, b.places[j], 1.0);
  Refresh(from, a.places[i]);
  Refresh(to, b.places[j]);
}

size_t PlacementMoves::Random(size_t below) {  // Numerical Recipes' linear congruential generator
  random_ = random_ * 1664525u + 1013904223u;
  return static_cast<size_t>((static_cast<uint64_t>(random_) * below) >> 32);
}

void PlacementMoves::DealPairs() {
  if (devices_ < 2) return;
  const int rounds = std::clamp(2 * (devices_ - 1), kLeastPairRounds, kPairRounds) * devices_;
  for (int round = 0; round < rounds; ++round) {
    if (round % kRefresh == 0) Normalise(Smoothness::kFine);
    const size_t part = static_cast<size_t>(round) % kMemoryLoad;
    if (scale_[part] <= 0) continue;
    const size_t a = Random(3) == 0 ? Random(loads_.size()) : Fullest(part);
    const size_t b = Random(loads_.size());
    if (a != b) DealTwo(a, b);
  }
}

void PlacementMoves::DealTwo(size_t a, size_t b) {
  std::vector<Piece> pieces;
  for (OpenTable& open : open_) {
    const SplitLoad& option = open.options[open.chosen];
    if (option.on_nodes) continue;
    int held = 0;
    size_t index = 0;
    for (size_t i = 0; i < open.places.size(); ++i) {
      const size_t rank = static_cast<size_t>(open.places[i]);
      if (rank != a && rank != b) continue;
      index = i;
      ++held;
    }
    if (held != 1) continue;
    const LoadParts& parts = index == 0 ? option.first : option.other;
    double size = 0;
    for (size_t c = 0; c < kMemoryLoad; ++c) size += parts[c];
    pieces.push_back({&open, index, open.places[index], size, &parts});
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& x, const Piece& y) { return x.size > y.size; });
  pieces.resize(std::min(pieces.size(), kPairPieces));
  const double least_gain = kLeastGain * Objective();
  LoadParts on_a = loads_[a], on_b = loads_[b], limit;
  for (size_t c = 0; c < kLoadParts; ++c) {
    limit[c] =
        scale_[c] > 0 ? std::max({kPairLimit / scale_[c], on_a[c], on_b[c]}) : std::numeric_limits<double>::infinity();
  }
  double bytes_a = bytes_[a], bytes_b = bytes_[b];
  double best = PairScore(on_a, on_b) - least_gain;
  // All subsets of pieces that change their rank, each differing from the one before by one piece (a Gray code).
  uint32_t changed = 0, best_changed = 0;
  for (uint32_t k = 1; k < (1u << pieces.size()); ++k) {
    const int i = std::countr_zero(k);
    const Piece& piece = pieces[static_cast<size_t>(i)];
    changed ^= 1u << i;
    const bool leaves_a = ((changed >> i) & 1) == (piece.from == static_cast<int>(a) ? 1u : 0u);
    const double sign = leaves_a ? 1 : -1;
    const double bytes = sign * piece.open->options[piece.open->chosen].bytes;
    bytes_a -= bytes;
    bytes_b += bytes;
    bool fits = bytes_a <= memory_ && bytes_b <= memory_;
    for (size_t c = 0; c < kLoadParts; ++c) {
      on_a[c] -= sign * (*piece.parts)[c];
      on_b[c] += sign * (*piece.parts)[c];
      fits &= on_a[c] <= limit[c] && on_b[c] <= limit[c];
    }
    if (!fits) continue;
    const double score = PairScore(on_a, on_b);
    if (score >= best) continue;
    best = score;
    best_changed = changed;
  }
  if (best_changed == 0) return;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (((best_changed >> i) & 1) == 0) continue;
    const Piece& piece = pieces[i];
    const SplitLoad& option = piece.open->options[piece.open->chosen];
    int& place = piece.open->places[piece.index];
    Put(option, piece.index, place, -1.0);
    place = static_cast<int>(place == static_cast<int>(a) ? b : a);
    Put(option, piece.index, place, 1.0);
  }
  RankPowers(a);
  RankPowers(b);
}

void PlacementMoves::Descend(Smoothness smoothness) {
  for (int pass = 0; pass < kPasses; ++pass) {
    Normalise(smoothness);
    bool improved = false;
    for (OpenTable& open : open_) improved |= Replace(open);
    for (size_t part = 0; part < kLoadParts; ++part) {
      if (scale_[part] > 0) improved |= SwapFromFullest(part);
    }
    if (!improved) break;
  }
}

}  // namespace portolan
