#include "plan/placement_moves.h"

#include <algorithm>

namespace portolan {
namespace {

constexpr int kPasses = 6;

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

void PlacementMoves::TakeOff(const Piece& piece) {
  int& place = piece.open->places[piece.index];
  Lift(piece.open->options[piece.open->chosen], piece.index, place);
  place = -1;
}

void PlacementMoves::PutAt(const Piece& piece, int rank) {
  const SplitLoad& option = piece.open->options[piece.open->chosen];
  piece.open->places[piece.index] = rank;
  Put(option, piece.index, rank, 1.0);
  Refresh(option, rank);
}

bool PlacementMoves::DealOne(const Piece& piece) {
  const SplitLoad& option = piece.open->options[piece.open->chosen];
  const std::vector<int>& places = piece.open->places;
  Objective();
  int best = -1;
  double best_score = 0;
  for (int rank = 0; rank < devices_; ++rank) {
    if (bytes_[static_cast<size_t>(rank)] + option.bytes > memory_) continue;
    if (std::find(places.begin(), places.end(), rank) != places.end()) continue;
    const double score = Score(option, piece.index, rank);
    if (best >= 0 && score >= best_score) continue;
    best = rank;
    best_score = score;
  }
  if (best < 0) return false;
  PutAt(piece, best);
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
