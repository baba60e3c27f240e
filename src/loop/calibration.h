#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "loop/measured_grid.h"

namespace portolan {

// The lookups of a call behind the embedding grids, but for those over the number of lookups.
constexpr int64_t kCalibratedLookups = 16384;

// Kinds of kernels that a machine slows down by different factors: by its clock, by what shares its cores, its caches.
enum class KernelClass { kProduct, kElementwise, kLookup, kUpdate };
constexpr size_t kKernelClasses = 4;
using ClassTimes = std::array<double, kKernelClasses>;  // by KernelClass
const char* KernelClassName(size_t kernel_class);       // "products", "elementwise", "lookups", "updates"
// Of a grid's kernel.
KernelClass ClassOf(const std::string& grid);

// What this machine's kernels cost, by `calibrate`. Grids are of calls of the engine's own kernels:
//   elementwise kernels by their name in KernelCall  [elements, width]
//   gemm.<format>.<layout>                           [m, n, k]; layouts nt (forward), nn (input), tn (weight gradient)
//   dot_forward and the like                         [rows, vectors, dim]
//   embedding_forward.<format>.<warm|cold>           [dim, lookups a bag], seconds a lookup
//   embedding_<fused|separate>.<optimizer>.<warm|cold>  [dim, lookups a row], seconds a lookup, fp32 rows
//   embedding_<fused|separate>.<format>.<warm|cold>  the same with SGD, other formats
//   embedding_forward.fp32.near                      [dim, lookups a bag], rows in a core's own cache
//   cache_age                                        [seconds since it was touched], seconds of a pass over some data;
//   the
//                                                    last point is of data that no cache has
//   embedding_forward.fp32.spilled, embedding_fused.sgd.spilled  the same, outputs or gradients in memory
//   embedding_<fused|separate>.lookups  [lookups, dim, lookups a row], seconds a lookup: how they depend on the number
// warm: rows in the last-level cache; cold: rows of a table much larger than it.
struct Calibration {
  std::string machine;  // processor and threads: what it is valid for
  std::string date;     // ISO 8601
  int threads = 1;
  double last_level_bytes = 0;  // of the last-level cache, as the system states it
  double kept_bytes = 0;        // of it that this machine keeps for a moment
  double aged_bytes = 0;        // that the grid cache_age passes over
  // Of the tables behind the embedding grids.
  double near_table_bytes = 0, warm_table_bytes = 0, cold_table_bytes = 0;
  // Tables beyond the cold ones miss the address translation too: seconds more a row of tables of far_table_bytes.
  double far_table_bytes = 0, far_lookup_s = 0, far_update_s = 0;
  double fork_s = 0;            // an empty parallel loop
  double lookup_call_s = 0;     // an embedding call of few lookups, without the lookups
  double sort_pass_s = 0;       // a lookup and pass of the sort
  double copy_bytes_per_s = 0;  // read and written, memory
  double copy_one_thread_bytes_per_s = 0;
  double cache_bytes_per_s = 0;  // the same in the last-level cache
  double gemm_flops_per_s = 0, gemm_bf16_flops_per_s = 0, gemm_one_thread_flops_per_s = 0;
  ClassTimes probe_s{};  // SpeedProbe at its fastest, as the grids
  double spread = 0;     // median over all points of (slowest - fastest) / median of their repetitions
  std::vector<std::string> warnings;
  std::map<std::string, MeasuredGrid> grids;

  // The grid, which must exist: names are those above.
  const MeasuredGrid& Grid(const std::string& name) const;
  // Part of what lay in the caches that is gone after so many seconds in which nobody touched it and this process
  // touched little else: the neighbours of a virtual machine use the cache too. 0 on a machine without others.
  double Lost(double age_s) const;
  // Seconds a byte more of a pass over data that no cache has than over data that the last level has.
  double MissSecondsPerByte() const;
};

// Names of all grids and how many axes each has: a calibration without one of them is refused.
const std::map<std::string, size_t>& CalibratedGrids();

// "AMD EPYC (AuthenticAMD 25/17/1), 2 threads, kernels 1": what a calibration is valid for on the machine at hand.
std::string MachineKey();

// Runs all measurements on this machine's CPU, twice; about a minute. `progress` is told the part and its share done.
Calibration MeasureMachine(const std::function<void(const std::string& part, double done)>& progress);

// How fast this machine is at the moment: one kernel of each class, of a size that a small step has, in about 3 ms.
// Clocks, neighbours of a virtual machine and other load come and go, within seconds and by a factor of two.
class SpeedProbe {
 public:
  SpeedProbe();
  ~SpeedProbe();
  SpeedProbe(const SpeedProbe&) = delete;
  SpeedProbe& operator=(const SpeedProbe&) = delete;
  ClassTimes Seconds();
  // Seconds() over what the same kernels took at calibration.
  ClassTimes Slowdown(const Calibration& calibration);

 private:
  struct Kernels;
  std::unique_ptr<Kernels> kernels_;
};
// Median of each class.
ClassTimes MedianOf(const std::vector<ClassTimes>& times);

// The folder of the user's own data: $XDG_CONFIG_HOME/portolan, or ~/.config/portolan; "" where neither is known.
std::string UserDataDirectory();

// <folder>/calibration/cpu.yaml and <folder>/accelerators/cpu.yaml, which `--on cpu` then finds. Errors: I/O.
Status WriteCalibration(const Calibration& calibration, const std::string& folder);
// Error: a file that is not whole, with its place.
Result<Calibration> ReadCalibration(const std::string& folder);

// The folder's calibration where it fits this machine and is at most `max_age_days` old; otherwise measured and kept.
Result<Calibration> CalibrationOfThisMachine(const std::string& folder, double max_age_days,
                                             const std::function<void(const std::string&, double)>& progress);

}  // namespace portolan
