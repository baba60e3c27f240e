#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda_measure.h"
#include "engine/cuda_network.h"
#include "loop/measured_grid.h"

// Steps of the CUDA engine, priced from calibrated times of its kernels.
namespace portolan {

struct CudaCalibration {
  std::string device, date;
  double l2_bytes = 0, copy_bytes_per_s = 0;
  // Of a step beside its kernels: results copied back, the host's turn. Measured on a network of two small layers.
  double step_s = 0;
  std::map<std::string, MeasuredGrid> grids;  // by the names of CudaKernelTimes

  // Error: no such grid.
  Result<double> Seconds(const std::string& grid, const std::vector<double>& at) const;
};

// How the lookups of a batch fall on a table: those whose row is not in the L2 cache, if the cache keeps the hottest
// rows of the table whose turn it is.
struct CudaTableLookups {
  double lookups = 0, distinct = 0, missed = 0, bags = 0;  // a batch
};
std::vector<CudaTableLookups> CountCudaLookups(const NetworkPlan& plan, const std::vector<Batch>& batches,
                                               double l2_bytes);

// Seconds by operation, in the engine's names and order, and of the step: the sort of the lookups runs beside the
// layers' forward pass, everything else one after the other.
struct CudaStepPrice {
  std::vector<std::pair<std::string, double>> operations;
  double step_s = 0;
};
Result<CudaStepPrice> PriceCudaStep(const NetworkPlan& plan, CudaMath math,
                                    const std::vector<CudaTableLookups>& lookups, const CudaCalibration& calibration);

}  // namespace portolan
