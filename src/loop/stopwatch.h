#pragma once

#include <functional>
#include <vector>

namespace portolan {

// Times of repeated calls.
class Stopwatch {
 public:
  // Seconds of one call of run(), after one call to warm up: of kRepetitions samples of as many calls as
  // take kSampleSeconds the median. `before`, where
  // given, is called before every sample of one call and not timed.
  double Median(const std::function<void()>& run, const std::function<void()>& before = nullptr);
  // Median over all points so far of (second slowest - fastest) / median.
  double Spread() const;

 private:
  static constexpr int kRepetitions = 3;
  static constexpr double kSampleSeconds = 100e-6;
  std::vector<double> spreads_;
};

}  // namespace portolan
