#include "select/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "select/catalogue_csv.h"
#include "select/fit_lists.h"

namespace portolan {
namespace {

constexpr double kSlowWeight = 2.0;    // how fast slow kernels lose weight
constexpr double kSlowest = 2.0;       // log(t / best) from which they all weigh the same
constexpr double kTemperature = 0.03;  // of the choice, in log time
constexpr double kPhysicsRate = 0.05, kCoarseRate = 0.03, kFineRate = 0.01;
constexpr int kJacobianAge = 10;  // steps for which derivatives by the constants are kept
constexpr double kDifference = 1e-4;
constexpr double kLeastFactor = 3e-3;  // smaller ones are left out of the file

// One factor of a row: which one, and by which part of the regime it is multiplied.
struct Use {
  int factor;
  int slope;  // 0 none, otherwise 1 + its place among kSlopeSuffixes
};

class Fit {
 public:
  Fit(const FamilyEntry& family, const Accelerator& accelerator, DType compute, std::span<const CalibrationRow> rows,
      const CalibrationOptions& options)
      : family_(family), accelerator_(accelerator), rows_(rows), options_(options) {
    constants_ = InitialConstants(family.family, compute);
    ReadRows();
    for (const ConstantSpec& spec : family.specs) start_.push_back(ToFree(spec, spec.initial));
    free_ = start_;
    factors_.assign(names_.size(), 0.0);
  }

  FamilyConstants Run() {
    // Constants alone first, so that factors hold only what the terms cannot say.
    with_factors_ = false;
    Descend(options_.coarse_steps, kPhysicsRate, 0.5, 0.5, 0.0);
    with_factors_ = true;
    Descend(options_.coarse_steps, kCoarseRate, 0.5, 0.5, 0.0);
    Descend(options_.fine_steps, kFineRate, 0.05, 0.5, 1.0);
    SetConstants(free_);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (std::fabs(factors_[i]) > kLeastFactor) constants_.factors[names_[i]] = factors_[i];
    }
    return constants_;
  }

 private:
  void ReadRows() {
    const auto model = family_.make(accelerator_, constants_);
    std::map<std::string, int> known;
    std::map<int, int> lists;
    for (const CalibrationRow& row : rows_) {
      std::vector<Use> uses;
      for (const std::string& key : model->FactorKeys(row.problem, row.kernel)) {
        const auto [place, added] = known.try_emplace(key, static_cast<int>(names_.size()));
        if (added) names_.push_back(key);
        int slope = 0;
        const size_t colon = key.rfind(':');
        for (int s = 0; s < kSlopeCount && colon != std::string::npos; ++s) {
          if (key.compare(colon, std::string::npos, kSlopeSuffixes[static_cast<size_t>(s)]) == 0) slope = s + 1;
        }
        uses.push_back({place->second, slope});
      }
      uses_.push_back(std::move(uses));
      list_.push_back(lists.try_emplace(row.list, static_cast<int>(lists.size())).first->second);
      log_time_.push_back(std::log(row.seconds));
    }
    slope_of_.assign(names_.size(), 0);
    for (const auto& uses : uses_) {
      for (const Use& use : uses) slope_of_[static_cast<size_t>(use.factor)] = use.slope;
    }
    lists_ = lists.size();
    std::vector<double> best(lists_, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < rows_.size(); ++i) {
      double& b = best[static_cast<size_t>(list_[i])];
      b = std::min(b, log_time_[i]);
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      behind_.push_back(log_time_[i] - best[static_cast<size_t>(list_[i])]);
      weight_.push_back(std::exp(-kSlowWeight * std::min(behind_.back(), kSlowest)));
    }
    total_weight_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
  }

  static double ToFree(const ConstantSpec& spec, double value) { return spec.low > 0.0 ? std::log(value) : value; }
  static double FromFree(const ConstantSpec& spec, double value) {
    return std::clamp(spec.low > 0.0 ? std::exp(value) : value, spec.low, spec.high);
  }
  void SetConstants(const std::vector<double>& from) {
    for (size_t i = 0; i < from.size(); ++i) constants_.values[i] = FromFree(family_.specs[i], from[i]);
  }

  // Time without factors, and what is added after them.
  void Base(std::vector<double>* kernel, std::vector<double>* after) {
    const auto model = family_.make(accelerator_, constants_);
    kernel->resize(rows_.size());
    after->resize(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const KernelTerms terms = model->Score(rows_[i].problem, rows_[i].kernel);
      (*kernel)[i] = terms.total - terms.clearing;
      (*after)[i] = terms.clearing;
    }
  }

  void RefreshJacobian() {
    SetConstants(free_);
    const auto model = family_.make(accelerator_, constants_);
    regime_.resize(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i)
      regime_[i] = SlopeMultipliers(model->Regime(rows_[i].problem, rows_[i].kernel));
    std::vector<double> base, after, moved;
    Base(&base, &after);
    jacobian_.assign(free_.size(), {});
    for (size_t j = 0; j < free_.size(); ++j) {
      std::vector<double> other = free_;
      other[j] += kDifference;
      SetConstants(other);
      Base(&moved, &after);
      for (size_t i = 0; i < rows_.size(); ++i) {
        const double change = std::log(moved[i] / base[i]) / kDifference;
        if (change != 0.0) jacobian_[j].push_back({static_cast<int>(i), change});
      }
    }
    SetConstants(free_);
  }

  double Multiplier(size_t row, int slope) const {
    return slope == 0 ? 1.0 : regime_[row][static_cast<size_t>(slope - 1)];
  }

  void Descend(int steps, double rate, double by_time, double by_list, double by_choice) {
    const size_t constants = free_.size(), all = constants + factors_.size();
    std::vector<double> mean(all, 0.0), square(all, 0.0), gradient(all), base, after, z(rows_.size()),
        kernel_share(rows_.size());
    for (int step = 0; step < steps; ++step) {
      if (step % kJacobianAge == 0) RefreshJacobian();
      SetConstants(free_);
      Base(&base, &after);
      for (size_t i = 0; i < rows_.size(); ++i) {
        double log_factor = 0.0;
        for (const Use& use : uses_[i])
          log_factor += factors_[static_cast<size_t>(use.factor)] * Multiplier(i, use.slope);
        const double kernel = base[i] * std::exp(log_factor);
        z[i] = std::log(kernel + after[i]);
        kernel_share[i] = kernel / (kernel + after[i]);
      }
      const std::vector<double> slope = LossSlope(z, by_time, by_list, by_choice);
      std::fill(gradient.begin(), gradient.end(), 0.0);
      for (size_t j = 0; j < constants; ++j) {
        for (const auto& [row, change] : jacobian_[j]) {
          const auto i = static_cast<size_t>(row);
          gradient[j] += slope[i] * kernel_share[i] * change;
        }
        gradient[j] += 2.0 * options_.prior * (free_[j] - start_[j]);
      }
      for (size_t i = 0; i < rows_.size(); ++i) {
        for (const Use& use : uses_[i]) {
          gradient[constants + static_cast<size_t>(use.factor)] +=
              slope[i] * kernel_share[i] * Multiplier(i, use.slope);
        }
      }
      for (size_t f = 0; f < factors_.size(); ++f) {
        gradient[constants + f] += 2.0 * options_.ridge * (slope_of_[f] == 0 ? 1.0 : 2.0) * factors_[f];
      }
      // Adam with a cosine schedule.
      const double now = rate * 0.5 * (1.0 + std::cos(M_PI * step / steps));
      const double fix1 = 1.0 - std::pow(0.9, step + 1), fix2 = 1.0 - std::pow(0.999, step + 1);
      for (size_t j = 0; j < all; ++j) {
        mean[j] = 0.9 * mean[j] + 0.1 * gradient[j];
        square[j] = 0.999 * square[j] + 0.001 * gradient[j] * gradient[j];
        const double move = now * (mean[j] / fix1) / (std::sqrt(square[j] / fix2) + 1e-8);
        if (j < constants) {
          free_[j] -= move;
        } else if (with_factors_) {
          factors_[j - constants] -= move;
        }
      }
      for (size_t j = 0; j < constants; ++j) {
        const ConstantSpec& spec = family_.specs[j];
        free_[j] = std::clamp(free_[j], ToFree(spec, spec.low), ToFree(spec, spec.high));
      }
    }
  }

  // Derivative of the loss by each z.
  std::vector<double> LossSlope(const std::vector<double>& z, double by_time, double by_list, double by_choice) const {
    const size_t n = rows_.size();
    std::vector<double> slope(n), sum(lists_, 0.0), weights(lists_, 0.0), top(lists_, -1e300), norm(lists_, 0.0),
        expected(lists_, 0.0), likely(n);
    for (size_t i = 0; i < n; ++i) {
      const auto l = static_cast<size_t>(list_[i]);
      sum[l] += weight_[i] * (z[i] - log_time_[i]);
      weights[l] += weight_[i];
      top[l] = std::max(top[l], -z[i] / kTemperature);
    }
    for (size_t i = 0; i < n; ++i) {
      const auto l = static_cast<size_t>(list_[i]);
      likely[i] = std::exp(-z[i] / kTemperature - top[l]);
      norm[l] += likely[i];
    }
    for (size_t i = 0; i < n; ++i) {
      const auto l = static_cast<size_t>(list_[i]);
      likely[i] /= norm[l];
      expected[l] += likely[i] * behind_[i];
    }
    for (size_t i = 0; i < n; ++i) {
      const auto l = static_cast<size_t>(list_[i]);
      const double error = z[i] - log_time_[i];
      const double centred = error - sum[l] / weights[l];
      const double share = weight_[i] / total_weight_;
      slope[i] = by_time * share * 1.5 * std::sqrt(std::fabs(error)) * (error < 0.0 ? -1.0 : 1.0) +
                 by_list * share * 2.0 * centred -
                 by_choice / static_cast<double>(lists_) * likely[i] * (behind_[i] - expected[l]) / kTemperature;
    }
    return slope;
  }

  const FamilyEntry& family_;
  const Accelerator& accelerator_;
  std::span<const CalibrationRow> rows_;
  CalibrationOptions options_;
  FamilyConstants constants_;
  std::vector<std::string> names_;
  std::vector<std::vector<Use>> uses_;
  std::vector<int> list_, slope_of_;
  size_t lists_ = 0;
  bool with_factors_ = true;
  std::vector<double> log_time_, behind_, weight_;
  double total_weight_ = 0.0;
  std::vector<double> start_, free_, factors_;
  std::vector<std::array<double, kSlopeCount>> regime_;
  std::vector<std::vector<std::pair<int, double>>> jacobian_;
};

using Sizes = std::tuple<int64_t, int64_t, int64_t, int64_t>;
Sizes SizesOf(const GemmProblem& p) { return {p.m, p.n, p.k, p.batch}; }

}  // namespace

Result<std::vector<CalibrationRow>> ReadCalibrationRows(const std::string& path, DType compute,
                                                        const Accelerator& accelerator) {
  PORTOLAN_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Load(path));
  PORTOLAN_ASSIGN_OR_RETURN(const KernelList kernels, ReadKernels(path, compute));
  const std::string time = table.Column("us_med") >= 0 ? "us_med" : "us";
  if (table.Column(time) < 0 || !kernels.tied_by_size || kernels.left_out > static_cast<int>(table.rows.size())) {
    return tl::make_unexpected(
        Error{ErrorCode::kMissingField, "calibration needs sizes and us_med or us", path, 1, ""});
  }
  std::vector<CalibrationRow> rows;
  std::map<std::tuple<Sizes, int>, int> lists;
  std::map<std::string, int> used;
  size_t kept = 0;
  for (size_t i = 0; i < table.rows.size() && kept < kernels.catalogue.kernels.size(); ++i) {
    if (kernels.catalogue.ids[kept] != std::to_string(i) && table.Column("kernel_id") < 0) continue;
    CsvRow in(table, i, &used);
    CalibrationRow row;
    row.problem = kernels.tied_problem[kept];
    row.kernel = kernels.catalogue.kernels[kept];
    ++kept;
    row.seconds = in.Number(time, 0.0) * 1e-6;
    if (row.seconds <= 0.0) in.Fail(time, "a time above zero is required");
    PORTOLAN_RETURN_IF_ERROR(in.Finish());
    if (row.problem.compute != compute) continue;
    if (row.kernel.reduction == SplitReduction::kAtomic)
      row.seconds += ClearAndConvertSeconds(row.problem, accelerator);
    row.list =
        lists.try_emplace({SizesOf(row.problem), static_cast<int>(row.problem.layout)}, static_cast<int>(lists.size()))
            .first->second;
    rows.push_back(row);
  }
  return rows;
}

FamilyConstants FitFamily(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                          std::span<const CalibrationRow> rows, const CalibrationOptions& options) {
  if (family.fit == FitMethod::kInsideLists) return FitLists(family, accelerator, compute, rows, FitListsOptions{});
  FamilyConstants constants = Fit(family, accelerator, compute, rows, options).Run();
  constants.accelerator = accelerator.id;
  return constants;
}

RegretSummary Regret(std::span<const CalibrationRow> rows, std::span<const double> predicted) {
  struct List {
    double best = std::numeric_limits<double>::infinity(), chosen = 0.0,
           least = std::numeric_limits<double>::infinity();
    double predicted_best = 0.0;
  };
  std::map<int, List> lists;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].judged) continue;
    List& list = lists[rows[i].list];
    if (rows[i].seconds < list.best) {
      list.best = rows[i].seconds;
      list.predicted_best = predicted[i];
    }
    if (predicted[i] < list.least) {
      list.least = predicted[i];
      list.chosen = rows[i].seconds;
    }
  }
  RegretSummary summary;
  std::vector<double> ratios, errors;
  double logs = 0.0;
  for (const auto& [id, list] : lists) {
    ratios.push_back(list.best / list.chosen);
    errors.push_back(std::fabs(list.predicted_best / list.best - 1.0));
    logs += std::log(ratios.back());
  }
  if (ratios.empty()) return summary;
  std::sort(ratios.begin(), ratios.end());
  std::sort(errors.begin(), errors.end());
  summary.n = static_cast<int>(ratios.size());
  summary.geomean = std::exp(logs / summary.n);
  // Linear interpolation between order statistics.
  const double place = 0.1 * (summary.n - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, ratios.size() - 1);
  summary.p10 = ratios[below] + (place - static_cast<double>(below)) * (ratios[above] - ratios[below]);
  summary.worst = ratios.front();
  summary.median_error = errors[errors.size() / 2];
  return summary;
}

std::vector<double> HeldOutPredictions(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                                       std::span<const CalibrationRow> rows, int folds,
                                       const CalibrationOptions& options) {
  std::map<Sizes, int> sizes;
  for (const CalibrationRow& row : rows) sizes.try_emplace(SizesOf(row.problem), 0);
  int next = 0;
  // Sizes come sorted; a stride that shares no factor with `folds` deals neighbours to different parts.
  for (auto& [size, fold] : sizes) fold = static_cast<int>((static_cast<int64_t>(next++) * 2654435761LL >> 7) % folds);
  std::vector<double> predicted(rows.size());
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<CalibrationRow> taught;
    for (const CalibrationRow& row : rows) {
      if (sizes[SizesOf(row.problem)] != fold) taught.push_back(row);
    }
    const auto model = family.make(accelerator, FitFamily(family, accelerator, compute, taught, options));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (sizes[SizesOf(rows[i].problem)] == fold) predicted[i] = model->Score(rows[i].problem, rows[i].kernel).total;
    }
  }
  return predicted;
}

}  // namespace portolan
