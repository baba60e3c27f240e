#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/step_graph.h"

namespace portolan {

// What a training step showed beside kernels measured alone: one set for every chip, model and system. A task's time is
// launch + factor x (total - launch). Values, dates and fit: step_constants.cc.
struct StepConstants {
  double gemm = 1;  // other kernels' heat and traffic
  double attention = 1;
  double pointwise_full = 1;      // hand-fused pointwise kernels over streaming at hbm_sustained
  double pointwise_compiled = 1;  // a graph compiler's
  double pointwise_eager = 1;     // a framework's, one an operation
  double embedding = 1;
  double optimizer = 1;
  double communication = 1;
  Seconds step_overhead;            // host round trip and stream joins between two steps
  double concurrency_gain = 0;      // two compute streams together reach 1 + this of one
  double host_kernel_eager = 0;     // host launches that one kernel of an eager framework costs
  double host_kernel_compiled = 0;  // of a compiled one
  Seconds framework_step;           // host time of a framework's step beside its launches, unless captured in a graph

  double Factor(Category category, Fusion fusion) const;
};
StepConstants SharedStepConstants();

// One slice of the step's wall time; the slices add up to it.
struct ExposedTerm {
  std::string name;  // a CategoryName, exposed; "host_launch", "step_overhead" or "idle"
  Seconds time;
};

struct Timeline {
  Seconds step;  // steady state: end of one step to the end of the next
  std::vector<ExposedTerm> exposed;
  std::array<Seconds, kCategoryCount> busy{};  // sums over tasks, overlapped or not
};

// Runs a few steps of the graph on in-order streams and returns the last one. The compute streams share the device: two
// at once progress at (1 + concurrency_gain) / 2 each. A slice of time is charged to what the main stream runs, else
// the embedding stream, else a collective, else a host copy; else to host launches when a kernel waits only for its
// enqueueing, else it is idle.
Timeline RunTimeline(const StepGraph& graph, const Recipe& recipe, const Cluster& cluster,
                     const StepConstants& constants);

}  // namespace portolan
