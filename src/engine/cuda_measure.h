#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace portolan {

// Times of one kernel of the CUDA engine over a full grid of its extents.
struct CudaKernelGrid {
  std::string name;
  std::vector<std::vector<double>> axes;  // ascending
  std::vector<double> seconds;            // a call; the last axis varies fastest
};
struct CudaKernelTimes {
  std::string device;  // name and CUDA version
  double l2_bytes = 0;
  double copy_bytes_per_s = 0;  // read and written, a gigabyte
  // <t>: fp32 or bf16, what activations are kept in.
  //   gemm.<fp32|tf32|bf16>.<nt|nn|tn>   [m, n, k]: forward, input gradient, weight gradient; the fastest of cuBLASLt's
  //   list activation_forward.<t>, activation_backward.<t>, cross_forward.<t>, cross_backward.<t>, copy.<t>,
  //   norm_forward.<t>, norm_backward.<t>, logits_forward.<t>, logits_backward.<t>, input.<t>   [rows, width]
  //   dot_forward.<t>, dot_backward.<t>  [rows, vectors, dim]
  //   loss [rows], sort [lookups, lookups a bag], dense_optimizer.<kind>.<t> [parameters]
  //   embedding_forward.<row format>.<t>.<warm|cold>  [lookups, dim, lookups a bag]: rows in the L2 cache; each row
  //   once, of gigabytes embedding_backward.<optimizer>.<row format>.<t>  [lookups, dim, lookups a row]
  std::vector<CudaKernelGrid> grids;
};
// Runs the engine's kernels on GPU 0; about half a minute. `progress` is told the part and its share done.
Result<CudaKernelTimes> MeasureCudaKernels(const std::function<void(const std::string& part, double done)>& progress);

}  // namespace portolan
