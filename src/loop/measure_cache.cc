#include "loop/measure_cache.h"

#include <omp.h>

#include <algorithm>
#include <vector>

namespace portolan {
namespace {

// One number of every cache line, by all threads.
float Read(const Pool& pool, int64_t bytes) {
  constexpr int64_t kLineFloats = 16;
  float sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < bytes / 4; i += kLineFloats) sum += pool.floats()[i];
  return sum;
}

void Keep(float value) {
  volatile float sink = value;
  static_cast<void>(sink);
}

// All threads busy with nothing that touches memory.
void Wait(double seconds) {
  const double until = omp_get_wtime() + seconds;
#pragma omp parallel
  {
    while (omp_get_wtime() < until) {
    }
  }
}

}  // namespace

void MeasureCache(Sweeper* sweeper) {
  Calibration& result = sweeper->result();
  Stopwatch& watch = sweeper->watch();
  // Small enough to be kept whole, large enough to lie beyond the private caches for the most part.
  const auto bytes = static_cast<int64_t>(std::clamp(result.last_level_bytes / 12, 5e5, 4e6));
  result.aged_bytes = static_cast<double>(bytes);
  const Pool data(bytes), others(static_cast<int64_t>(std::min(4 * result.last_level_bytes, 1e9)));
  const auto read = [&] { Keep(Read(data, bytes)); };
  const auto after = [&](const std::function<void()>& between) {
    return watch.Median(read, [&] {
      Keep(Read(data, bytes));
      between();
    });
  };
  constexpr double kForever = 1e9;
  sweeper->Sweep(
      "cache_age", {{1e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, kForever}},
      [&](const std::vector<double>& at) {
        return after([&] {
          if (at[0] < kForever) return Wait(at[0]);
          Keep(Read(others, others.bytes()));
        });
      },
      Sweeper::Shape::kAny);
  const double kept = after([] {}), lost = after([&] { Keep(Read(others, others.bytes())); });
  // After so many bytes of other data half of it is gone.
  const double half = 0.5 * (kept + lost);
  double fits = 0.125 * result.last_level_bytes;
  for (const double share : {0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0}) {
    const auto more = static_cast<int64_t>(share * result.last_level_bytes);
    if (after([&] { Keep(Read(others, more)); }) < half) fits = share * result.last_level_bytes;
  }
  result.kept_bytes = fits;
}

}  // namespace portolan
