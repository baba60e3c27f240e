#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "select/family.h"

namespace portolan {

// |predicted / measured - 1| over the shapes of a set, as fractions.
struct ErrorSummary {
  double mean = 0.0, median = 0.0, p90 = 0.0;
  bool NoWorseThan(const ErrorSummary& other) const {
    return mean <= other.mean && median <= other.median && p90 <= other.p90;
  }
};
ErrorSummary SummaryOf(std::vector<double> errors);

// Rows that start on 16 bytes in every operand, or not.
enum class RowKind { kAligned, kMisaligned };
RowKind RowKindOf(const GemmProblem& problem);

// How well the fastest kernel of a family's whole catalogue (Selector::ExpectedTime) foretells the best time that was
// measured, beside cost/gemm on the same shapes. Written by tools/calibrate_gemm/catalogue_errors.
struct CatalogueError {
  std::string set, chip, isa;
  KernelFamily family = KernelFamily::kTriton;
  DType compute = DType::kBf16;
  RowKind rows = RowKind::kAligned;
  std::vector<GemmLayout> layouts;  // that the set holds
  int n = 0;
  bool taught = false;        // constants were fitted to this set: its errors are too small
  double kernel_error = 0.0;  // between kernels of one problem, standard deviation of log(predicted / measured)
  ErrorSummary select, kernel_blind;
};

// <dir>/constants/whole_catalogue.yaml of every directory that has one: keys date, command, sets. Errors: as YamlMap's.
Result<std::vector<CatalogueError>> LoadCatalogueErrors(const std::vector<std::string>& data_dirs);
Status WriteCatalogueErrors(const std::vector<CatalogueError>& errors, const std::string& date,
                            const std::string& command, const std::string& path);

// The set that lets the planner price `problem` from the whole catalogue, or null. A family qualifies for an
// instruction set, compute type and kind of rows when it is no worse than cost/gemm in mean, median and 90th percentile
// on every set recorded for them, and one of at least kLeastShapes untaught shapes holds the problem's layout. Of
// several families the one with the least mean error.
constexpr int kLeastShapes = 30;
const CatalogueError* FindQualified(const std::vector<CatalogueError>& errors, const std::string& isa,
                                    const GemmProblem& problem);

}  // namespace portolan
