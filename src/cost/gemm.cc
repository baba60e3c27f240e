#include "cost/gemm.h"

#include <algorithm>

#include "cost/gemm_tiles.h"

namespace portolan {

Estimate GemmEstimate(const GemmShape& shape, const Accelerator& accelerator, InputResidency inputs) {
  const GemmTerms terms = GemmBest(shape, accelerator, inputs);
  Estimate estimate;
  estimate.compute = Seconds(std::max({terms.matrix, terms.issue, terms.latency}));
  estimate.memory = Seconds(std::max(terms.l2, terms.hbm) + terms.store + terms.reduction);
  estimate.launch = Seconds(terms.fixed);
  estimate.total = Seconds(terms.total);
  return estimate;
}

}  // namespace portolan
