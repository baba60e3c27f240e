#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "ops/gemm.h"

namespace portolan {

// Prices the matrix products of a step: as the fastest kernel of a measured catalogue (select) where the record of
// data/constants/whole_catalogue.yaml says that this is no worse than cost/gemm (select/catalogue_error.h: instruction
// set, compute type, layout, kind of rows), else by cost/gemm. Thread-safe.
class GemmTimes {
 public:
  // Reads the record of the data directories. Catalogues and constants are read when a product first needs them.
  // Errors: a record that cannot be read.
  static Result<std::shared_ptr<const GemmTimes>> Create(std::vector<std::string> data_dirs);
  ~GemmTimes();

  // The time of `shape` with its inputs in memory (InputResidency::kCold); std::nullopt where cost/gemm is to price it.
  std::optional<Estimate> SelectEstimate(const GemmShape& shape, const Accelerator& chip) const;
  // One line for people about products of `compute` on `chip`: empty where cost/gemm prices them all.
  std::string Note(DType compute, const Accelerator& chip) const;

 private:
  struct Impl;
  explicit GemmTimes(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What GraphBuilder prices products with, for the whole process: set once, before the first step is priced. Without it,
// or with null, cost/gemm prices them all.
void SetGemmTimes(std::shared_ptr<const GemmTimes> times);
std::shared_ptr<const GemmTimes> CurrentGemmTimes();

}  // namespace portolan
