#include "loop/stopwatch.h"

#include <algorithm>
#include <chrono>

namespace portolan {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

double Stopwatch::Median(const std::function<void()>& run, const std::function<void()>& before) {
  if (before) before();
  double begin = Now();
  run();
  const double first = Now() - begin;
  const int calls = before ? 1 : static_cast<int>(std::clamp(kSampleSeconds / std::max(first, 1e-9), 1.0, 1e4));
  std::vector<double> samples;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    if (before) before();
    begin = Now();
    for (int call = 0; call < calls; ++call) run();
    samples.push_back((Now() - begin) / calls);
  }
  std::sort(samples.begin(), samples.end());
  // Without the slowest: one interruption is no spread of the kernel.
  spreads_.push_back((samples[kRepetitions - 2] - samples[0]) / samples[kRepetitions / 2]);
  return samples[kRepetitions / 2];
}

double Stopwatch::Spread() const {
  std::vector<double> sorted = spreads_;
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace portolan
