#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/calibration.h"
#include "loop/stopwatch.h"

namespace portolan {

// Memory on huge pages, as the engine's own (network.cc).
class Pool {
 public:
  explicit Pool(int64_t bytes);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  float* floats() const { return static_cast<float*>(memory_); }
  char* data() const { return static_cast<char*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  void* memory_;
};

// Fills a calibration's grids. Not thread-safe; the kernels measured use OpenMP.
class Sweeper {
 public:
  // With which extents a grid's times grow: those a lookup grow with the row, but not with the lookups.
  enum class Shape { kGrowing, kGrowingFirst, kAny };
  // One point: seconds at these extents.
  using Visit = std::function<double(const std::vector<double>& at)>;

  explicit Sweeper(Calibration* result) : result_(*result) {}

  // Calls visit for every point of the grid `name` in order and keeps what it returns. Points that stand out of their
  // neighbours are measured again, for what stood out may have been the machine: the fastest counts. So it does where
  // the grid is swept a second time, over the same axes.
  void Sweep(const std::string& name, std::vector<std::vector<double>> axes, const Visit& visit,
             Shape shape = Shape::kGrowing);
  // After the last grid: probe, spread and a warning are set.
  void Finish();

  Stopwatch& watch() { return watch_; }
  Calibration& result() { return result_; }

 private:
  static bool StandsOut(const MeasuredGrid& grid, size_t point, Shape shape);
  void NoteSpeed();

  Calibration& result_;
  Stopwatch watch_;
  SpeedProbe probe_;
  std::vector<ClassTimes> speeds_;
  ClassTimes fastest_{};
  double probed_at_ = 0;
};

}  // namespace portolan
