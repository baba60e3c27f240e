#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/estimate.h"
#include "hw/accelerator.h"
#include "select/family.h"
#include "select/kernel.h"
#include "select/problem.h"
#include "select/terms.h"

namespace portolan {

// Kernels that a caller can launch, with the name of each. Kernels of several families may stand together.
struct KernelCatalogue {
  std::vector<GemmKernel> kernels;
  std::vector<std::string> ids;  // one a kernel
};

struct RankedKernel {
  int32_t index = -1;  // in the catalogue; -1 = no kernel runs the problem
  Seconds time;
  Estimate estimate;
  // First: probability that it is within 2 % of the catalogue's fastest, against the runner-up, from the error between
  // kernels on held-out shapes. Others: probability that they beat the first.
  double confidence = 0.0;
};

// Picks kernels without measuring anything. Thread-safe; Best and Rank allocate nothing.
class Selector {
 public:
  // `constants`: calibrated values by family and compute type (select/constants.h); where a pair is missing the nearest
  // stands in: the same family and type on a relative of the chip, the same family with another type, and last the
  // family's uncalibrated values. Errors: an empty catalogue, a kernel with impossible fields.
  static Result<Selector> Create(const Accelerator& accelerator, KernelCatalogue catalogue,
                                 std::span<const FamilyConstants> constants = {});
  Selector(Selector&&) noexcept;
  Selector& operator=(Selector&&) noexcept;
  ~Selector();

  // The fastest kernel; index -1 when none of the catalogue runs the problem or the problem makes no sense
  // (IsPriceable). Answers of plain problems (no group list) are kept in a bounded cache.
  RankedKernel Best(const GemmProblem& problem) const;
  // The same without the cache.
  RankedKernel BestUncached(const GemmProblem& problem) const;
  // The time to expect of `best`, an answer of Best for `problem`: its own is the smallest of many predictions and too
  // small by their errors (selection_shift.h), of which `kernel_error` is the standard deviation between kernels of one
  // problem, of a logarithm, > 0. Never less than best.time. No allocation; costs as much as BestUncached.
  Seconds ExpectedTime(const GemmProblem& problem, const RankedKernel& best, double kernel_error) const;
  // Fills `ranked` with the fastest kernels, fastest first; returns how many (at most ranked.size(), fewer when fewer
  // kernels run the problem). Equal times keep catalogue order.
  size_t Rank(const GemmProblem& problem, std::span<RankedKernel> ranked) const;
  std::vector<RankedKernel> Rank(const GemmProblem& problem, int k) const;

  // The terms of one kernel of the catalogue on `problem`.
  KernelTerms Explain(const GemmProblem& problem, int32_t index) const;

  const KernelCatalogue& catalogue() const;
  const Accelerator& accelerator() const;

 private:
  struct Impl;
  explicit Selector(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace portolan
