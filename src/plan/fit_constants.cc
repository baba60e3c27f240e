#include "plan/fit_constants.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace portolan {
namespace {

constexpr double kMeasurementSpread = 0.05;

double Value(const StepConstants& constants, const FittedConstant& fitted) {
  return fitted.factor != nullptr ? constants.*fitted.factor : constants.step_overhead.value;
}

void SetValue(StepConstants& constants, const FittedConstant& fitted, double value) {
  if (fitted.factor != nullptr) {
    constants.*fitted.factor = value;
  } else {
    constants.step_overhead = Seconds(value);
  }
}

double Objective(const std::vector<FitPoint>& points, const StepConstants& constants) {
  double sum = 0;
  for (const FitPoint& point : points) {
    const double residual = std::log1p(FitError(point, constants)) / kMeasurementSpread;
    sum += residual * residual;
  }
  for (const FittedConstant& fitted : FittedConstants()) {
    const double residual = std::log(Value(constants, fitted) / fitted.prior) / std::log(fitted.spread);
    sum += residual * residual;
  }
  return sum;
}

}  // namespace

const std::vector<FittedConstant>& FittedConstants() {
  static const std::vector<FittedConstant> kConstants = {
      {"gemm", &StepConstants::gemm, 1.05, 1.05,
       "GEMMs inside real models against alone: medians of in-model times, AMD-AGI/TraceLens; up to 1.17 on B200"},
      {"attention", &StepConstants::attention, 1.06, 1.05,
       "AMD-AGI/Primus-DLRM doc/perf_analysis.md: in training over standalone, B200 1.05 and 1.08, MI355X 1.13 and "
       "1.04"},
      {"pointwise_full", &StepConstants::pointwise_full, 1.1, 1.1,
       "hand-written streaming kernels: 5 to 15 % behind a copy (docs/cost-memory.md)"},
      {"pointwise_compiled", &StepConstants::pointwise_compiled, 1.6, 1.2,
       "generated Triton kernels of OneTrans: 4.0 to 4.6 TB/s on B200 and MI355X by their compulsory bytes (byte "
       "counts "
       "of the compiler, kernel times of Primus-DLRM); pointwise mixes around them 2 to 3 TB/s"},
      {"embedding", &StepConstants::embedding, 1.1, 1.15, "docs/cost-memory.md: FBGEMM on H100 is 12 to 15 % slower"},
      {"optimizer", &StepConstants::optimizer, 1.0, 1.15, "streaming kernels"},
      {"communication", &StepConstants::communication, 1.1, 1.15,
       "docs/cost-collectives.md: collectives beside compute are 1.0 to 1.6 times slower"},
      {"step_overhead", nullptr, 80e-6, 1.5, "a host round trip, a graph launch and the joins of its streams; assumed"},
  };
  return kConstants;
}

Result<std::vector<FitPoint>> FitPoints(const std::vector<ValidationEntry>& entries, const Catalogue& catalogue,
                                        const std::vector<std::string>& data_dirs) {
  std::vector<FitPoint> points;
  for (const ValidationEntry& entry : entries) {
    if (entry.use != ValidationUse::kFit || !entry.unmodelled.empty()) continue;
    PORTOLAN_ASSIGN_OR_RETURN(PreparedStep prepared, PrepareStep(entry, catalogue, data_dirs));
    PORTOLAN_ASSIGN_OR_RETURN(StepEstimate estimate, EstimateStep(prepared.model, prepared.recipe, prepared.cluster));
    points.push_back({entry.id, prepared.cluster.accelerator.id, *entry.step, std::move(prepared.recipe),
                      std::move(prepared.cluster), std::move(estimate.graph)});
  }
  return points;
}

double FitError(const FitPoint& point, const StepConstants& constants) {
  return RunTimeline(point.graph, point.recipe, point.cluster, constants).step / point.measured - 1;
}

StepConstants FitStepConstants(const std::vector<FitPoint>& points) {
  StepConstants best = SharedStepConstants();
  for (const FittedConstant& fitted : FittedConstants()) SetValue(best, fitted, fitted.prior);
  double lowest = Objective(points, best);
  for (double step = 0.1; step > 1e-4; step /= 2) {
    for (bool improved = true; improved;) {
      improved = false;
      for (const FittedConstant& fitted : FittedConstants()) {
        for (const double direction : {1.0, -1.0}) {
          StepConstants trial = best;
          SetValue(trial, fitted, Value(best, fitted) * std::exp(direction * step));
          const double objective = Objective(points, trial);
          if (objective >= lowest) continue;
          lowest = objective;
          best = trial;
          improved = true;
          break;
        }
      }
    }
  }
  return best;
}

std::vector<LeaveOneOut> FitLeavingEachOut(const std::vector<FitPoint>& points) {
  std::set<std::string> accelerators;
  for (const FitPoint& point : points) accelerators.insert(point.accelerator);
  std::vector<LeaveOneOut> results;
  for (const std::string& accelerator : accelerators) {
    std::vector<FitPoint> others;
    for (const FitPoint& point : points) {
      if (point.accelerator != accelerator) others.push_back(point);
    }
    const StepConstants constants = FitStepConstants(others);
    LeaveOneOut result{accelerator, {}};
    for (const FitPoint& point : points) {
      if (point.accelerator == accelerator) result.errors.emplace_back(point.id, FitError(point, constants));
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace portolan
