#include "plan/smooth_loads.h"

#include <algorithm>
#include <cmath>

namespace portolan {
namespace {

constexpr double kCancellation = 1e3;

}  // namespace

double SmoothLoads::Power(double x) const {  // x^(24 x 2^squarings_)
  const double x8 = (x * x) * (x * x) * (x * x) * (x * x);
  double power = x8 * x8 * x8;
  for (int i = 0; i < squarings_; ++i) power *= power;
  return power;
}

void SmoothLoads::Normalise(Smoothness smoothness) {
  squarings_ = smoothness == Smoothness::kFine ? 3 : 0;
  scale_.fill(0);
  for (const LoadParts& load : loads_) {
    for (size_t c = 0; c < kLoadParts; ++c) scale_[c] = std::max(scale_[c], load[c]);
  }
  scale_[kSentLoad] = std::max(scale_[kSentLoad], received_);
  if (smoothness == Smoothness::kFine) scale_[kMemoryLoad] = 0;
  for (double& scale : scale_) scale = scale > 0 ? 1 / scale : 0;
  sums_.fill(0);
  std::fill(powers_.begin(), powers_.end(), LoadParts{});
  for (size_t r = 0; r < loads_.size(); ++r) RankPowers(r);
}

void SmoothLoads::RankPowers(size_t rank) {
  for (size_t c = 0; c < kLoadParts; ++c) {
    const double power = Power(std::max(0.0, loads_[rank][c]) * scale_[c]);
    sums_[c] += power - powers_[rank][c];
    // A sum that lost nearly all of itself holds only rounding errors.
    stale_ |= powers_[rank][c] > kCancellation * sums_[c];
    powers_[rank][c] = power;
  }
}

void SmoothLoads::Refresh(const SplitLoad& option, int at) {
  for (int d = 0; d < option.span; ++d) RankPowers(static_cast<size_t>(at * option.span + d));
}

double SmoothLoads::Objective() {
  const double exponent = 24.0 * (1 << squarings_);
  if (stale_) {
    sums_.fill(0);
    for (const LoadParts& power : powers_) {
      for (size_t c = 0; c < kLoadParts; ++c) sums_[c] += power[c];
    }
    stale_ = false;
  }
  double total = 0;
  for (size_t c = 0; c < kLoadParts; ++c) {
    slope_[c] = 0;
    if (scale_[c] <= 0) continue;
    const double sum = std::max(0.0, sums_[c]) + (c == kSentLoad ? Power(received_ * scale_[c]) : 0.0);
    const double norm = std::pow(sum, 1 / exponent) / scale_[c];
    slope_[c] = sum > 0 ? norm / sum : 0;
    total += norm;
  }
  return total;
}

double SmoothLoads::Score(const SplitLoad& option, size_t piece, int at) const {
  double score = 0;
  for (int d = 0; d < option.span; ++d) {
    const size_t rank = static_cast<size_t>(at * option.span + d);
    const LoadParts& parts = piece == 0 && d == 0 ? option.first : option.other;
    for (size_t c = 0; c < kLoadParts; ++c) {
      if (parts[c] <= 0) continue;
      score += slope_[c] * (Power((loads_[rank][c] + parts[c]) * scale_[c]) - powers_[rank][c]);
    }
  }
  return score;
}

void SmoothLoads::Put(const SplitLoad& option, size_t piece, int at, double sign) {
  for (int d = 0; d < option.span; ++d) {
    const size_t rank = static_cast<size_t>(at * option.span + d);
    const LoadParts& parts = piece == 0 && d == 0 ? option.first : option.other;
    for (size_t c = 0; c < kLoadParts; ++c) loads_[rank][c] += sign * parts[c];
    bytes_[rank] += sign * option.bytes;
  }
}

void SmoothLoads::Lift(const SplitLoad& option, size_t piece, int at) {
  Put(option, piece, at, -1.0);
  Refresh(option, at);
}

double SmoothLoads::SwapScore(const SplitLoad& from, size_t i, int here, const SplitLoad& to, size_t j,
                              int there) const {
  const LoadParts& out = i == 0 ? from.first : from.other;
  const LoadParts& in = j == 0 ? to.first : to.other;
  const size_t a = static_cast<size_t>(here), b = static_cast<size_t>(there);
  double score = 0;
  for (size_t c = 0; c < kLoadParts; ++c) {
    const double moved = out[c] - in[c];
    if (moved == 0) continue;
    score += slope_[c] * (Power(std::max(0.0, loads_[a][c] - moved) * scale_[c]) - powers_[a][c] +
                          Power(std::max(0.0, loads_[b][c] + moved) * scale_[c]) - powers_[b][c]);
  }
  return score;
}

double SmoothLoads::PairScore(const LoadParts& a, const LoadParts& b) const {
  double score = 0;
  for (size_t c = 0; c < kLoadParts; ++c) {
    if (slope_[c] <= 0) continue;
    score += slope_[c] * (Power(std::max(0.0, a[c]) * scale_[c]) + Power(std::max(0.0, b[c]) * scale_[c]));
  }
  return score;
}

size_t SmoothLoads::Fullest(size_t part) const {
  size_t fullest = 0;
  for (size_t r = 0; r < loads_.size(); ++r) {
    if (loads_[r][part] > loads_[fullest][part]) fullest = r;
  }
  return fullest;
}

}  // namespace portolan
