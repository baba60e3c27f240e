#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "select/csv.h"
#include "select/problem.h"
#include "select/selector.h"

namespace portolan {

// Problems of a CSV. Columns, absent ones at their default:
//   problem_id or shape_id         any text; default: 0, 1, 2 ... in order of first appearance
//   M, N, K, layout                row-major sizes and TN, NN or NT (default TN)
//   m, n, k, transA, transB        instead: BLAS, column-major (M = n, N = m); without transA and transB: M = m, N = n
//   batch (1)
//   dtype or type                  bf16, tf32 ...; or a_type, b_type, d_type or out_type, and compute_type
//   lda, ldb, ldc, ldd             elements, 0 = packed, otherwise not less than a row
//   alignment                      of the pointers in bytes, 1, 2, 4 ... (16)
//   group_rows                     rows of each product of a grouped call, "128;0;64", which add up to M (none)
//   epilogue                       none (default), bias, bias_activation, activation_gradient, add
//   usable_units or cu_num (0 = all), cache  cold (default) or warm
// A row that repeats a problem is dropped. Errors name file, line, column and what would be accepted.
struct ProblemList {
  std::vector<GemmProblem> problems;
  std::vector<std::string> ids;
  std::vector<std::string> ignored;              // columns that nothing reads
  std::vector<std::vector<int64_t>> group_rows;  // what the problems' group_m point to
};
Result<ProblemList> ReadProblems(const std::string& path);
Result<ProblemList> ReadProblems(const CsvTable& table);

// Kernels of a CSV. Columns: `kernel_id` (default: 0, 1, 2 ... = the row) and those of one family, recognised by its
// marker column (family.h), or by a column `family`. A catalogue whose rows also name a problem (problem_id, shape_id,
// or M, N, K) ties each kernel to that problem: `tied` holds (problem, kernel) pairs, and a rank column counts. Rows of
// no kernel (BM = 0) are left out.
struct KernelList {
  KernelCatalogue catalogue;
  std::vector<std::string> tied_id;       // per kernel: the problem's id; empty = not tied by id
  std::vector<GemmProblem> tied_problem;  // per kernel, where the rows hold sizes
  bool tied_by_id = false, tied_by_size = false;
  int left_out = 0;
  std::vector<std::string> ignored;
};
// A table of aiter's (columns lib, kernel_id) without names takes them from amd_aiter_kernels.csv beside it.
Result<KernelList> ReadKernels(const std::string& path, DType compute);
Result<KernelList> ReadKernels(const CsvTable& table, DType compute);

// The dtype names of the published tables ("bf16", "f16", "fp8", "i8", "f32", "tf32" ...) as a compute type.
std::optional<DType> ParseTableDType(const std::string& name);

// The epilogue of that name, one of kGemmEpilogueNames.
std::optional<GemmEpilogue> ParseGemmEpilogue(const std::string& name);
inline constexpr const char* kGemmEpilogueNames = "none, bias, bias_activation, activation_gradient, add";

}  // namespace portolan
