#include "loop/sweeper.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace portolan {
namespace {

ClassTimes Faster(ClassTimes times, const ClassTimes& others) {
  for (size_t c = 0; c < kKernelClasses; ++c) times[c] = std::min(times[c], others[c]);
  return times;
}

}  // namespace

Pool::Pool(int64_t bytes) : bytes_(bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  memory_ = std::aligned_alloc(static_cast<size_t>(kHugePage), static_cast<size_t>(rounded));
  PORTOLAN_CHECK(memory_ != nullptr, "no memory to measure with");
  madvise(memory_, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  std::memset(memory_, 0, static_cast<size_t>(rounded));
}

Pool::~Pool() { std::free(memory_); }

void Sweeper::Sweep(const std::string& name, std::vector<std::vector<double>> axes, const Visit& visit, Shape shape) {
  MeasuredGrid& grid = result_.grids[name];
  grid.axes = std::move(axes);
  size_t points = 1;
  for (const std::vector<double>& axis : grid.axes) points *= axis.size();
  const auto measure = [&](size_t point) {
    std::vector<double> at(grid.axes.size());
    for (size_t a = grid.axes.size(), rest = point; a-- > 0; rest /= grid.axes[a].size()) {
      at[a] = grid.axes[a][rest % grid.axes[a].size()];
    }
    NoteSpeed();
    return visit(at);
  };
  const bool again = !grid.seconds.empty();
  for (size_t point = 0; point < points; ++point) {
    const double seconds = measure(point);
    if (again) {
      grid.seconds[point] = std::min(grid.seconds[point], seconds);
    } else {
      grid.seconds.push_back(seconds);
    }
  }
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t point = 0; point < points; ++point) {
      if (StandsOut(grid, point, shape)) grid.seconds[point] = std::min(grid.seconds[point], measure(point));
    }
  }
}

bool Sweeper::StandsOut(const MeasuredGrid& grid, size_t point, Shape shape) {
  constexpr double kAboveNeighbours = 1.25, kAboveLarger = 1.1;
  const double seconds = grid.seconds[point];
  size_t step = 1;
  for (size_t a = grid.axes.size(); a-- > 0;) {
    const size_t extent = grid.axes[a].size(), index = point / step % extent;
    const bool has_larger = index + 1 < extent;
    const bool grows = shape == Shape::kGrowing || (shape == Shape::kGrowingFirst && a == 0);
    if (has_larger && grows && seconds > kAboveLarger * grid.seconds[point + step]) return true;
    if (has_larger && index > 0 &&
        seconds > kAboveNeighbours * std::sqrt(grid.seconds[point - step] * grid.seconds[point + step])) {
      return true;
    }
    step *= extent;
  }
  return false;
}

// The probe's time, at most kProbeEvery old. What is much slower than ever before is looked at again: a clock stays
// low for longer than an interruption takes.
void Sweeper::NoteSpeed() {
  constexpr double kProbeEvery = 40e-3, kMuchSlower = 1.25;
  constexpr int kMaxTries = 4;
  if (speeds_.empty() || omp_get_wtime() - probed_at_ > kProbeEvery) {
    ClassTimes seconds = probe_.Seconds();
    if (speeds_.empty()) fastest_ = seconds;
    for (int again = 1; again < kMaxTries; ++again) {
      bool slow = false;
      for (size_t c = 0; c < kKernelClasses; ++c) slow = slow || seconds[c] > kMuchSlower * fastest_[c];
      if (!slow) break;
      seconds = Faster(seconds, probe_.Seconds());
    }
    fastest_ = Faster(fastest_, seconds);
    speeds_.push_back(seconds);
    probed_at_ = omp_get_wtime();
  }
}

// The tenth part of the probes that was fastest says what the machine can do.
void Sweeper::Finish() {
  result_.spread = watch_.Spread();
  double slow = 1;
  for (size_t c = 0; c < kKernelClasses; ++c) {
    std::vector<double> times;
    for (const ClassTimes& speed : speeds_) times.push_back(speed[c]);
    std::sort(times.begin(), times.end());
    result_.probe_s[c] = times[times.size() / 10];
    slow = std::max(slow, times[times.size() * 9 / 10] / result_.probe_s[c]);
  }
  constexpr double kNotable = 1.25;
  if (slow > kNotable) {
    result_.warnings.push_back("this machine's speed changed by a factor of " + std::to_string(slow).substr(0, 4) +
                               " while it was measured: other load, a neighbour of a virtual machine, a power cap or "
                               "a thermal limit; times are those of its fastest tenth");
  }
}

}  // namespace portolan
