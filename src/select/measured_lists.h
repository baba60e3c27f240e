#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/catalogue.h"
#include "select/calibrate.h"

namespace portolan {

// Timed kernels of one data set on one chip and one compute type.
struct MeasuredList {
  std::string name;  // "mi350x_tensile_bf16"
  std::string chip;  // accelerator id
  KernelFamily family = KernelFamily::kTriton;
  DType compute = DType::kBf16;
  std::vector<CalibrationRow> rows;
};

// The Tensile client sweep on MI350X: gemm/mi350x_tensile_{shapes,kernels,times}.csv under `data_dir`, joined on
// shape_id and kernel_id; the median over passes of one kernel on one shape.
Result<MeasuredList> ReadTensileSweep(const std::string& data_dir, const Catalogue& hardware);

// aiter's tuned-GEMM tables: gemm/amd_aiter_winners.csv with the names of amd_aiter_kernels.csv, one list a chip and
// compute type. A list of rows is one problem, quantisation, layout of the weights and output; its rows the fastest
// repeat of each (library, kernel, split) . Chips: gfx950 = mi355x, gfx942 = mi300x with cu_num usable units.
Result<std::vector<MeasuredList>> ReadAiterTables(const std::string& data_dir, const Catalogue& hardware);

// The sweeps on H200: gemm/h200_{triton_bf16,cublaslt_bf16,cublaslt_tf32,cublaslt_fp8}.csv.
Result<std::vector<MeasuredList>> ReadH200Lists(const std::string& data_dir, const Catalogue& hardware);

// Rows of every list that has at least `least` candidates stay judged, the others only teach.
void JudgeListsOf(int least, std::vector<CalibrationRow>* rows);

// Best time of each shape of a table that names no kernel, for the kernel-blind model (cost/gemm.h).
struct MeasuredShape {
  GemmShape shape;
  double seconds = 0.0;
};
struct MeasuredShapes {
  std::string name, chip;
  InputResidency inputs = InputResidency::kCold;
  double launch_seconds = 0.0;  // what the harness adds to every product
  std::vector<MeasuredShape> rows;
};
// ROCm/xla's grid on H100, B200 and gfx950 (gemm/matmul_grid_gfx950_b200_h100.csv; bf16, and fp8 on B200) and the
// hipBLASLt winners of recommendation training on gfx950 (gemm/mi355x_hipblaslt_recsys.csv, bf16).
Result<std::vector<MeasuredShapes>> ReadMeasuredShapes(const std::string& data_dir);

}  // namespace portolan
