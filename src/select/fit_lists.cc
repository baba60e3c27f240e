#include "select/fit_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace portolan {
namespace {

constexpr double kDifference = 1e-4;  // for derivatives, in free units

class Lists {
 public:
  Lists(const FamilyEntry& family, const Accelerator& accelerator, std::span<const CalibrationRow> rows,
        const FitListsOptions& options, FamilyConstants start)
      : family_(family), accelerator_(accelerator), rows_(rows), options_(options), constants_(std::move(start)) {
    std::map<int, int> known;
    for (const CalibrationRow& row : rows_) {
      list_.push_back(static_cast<size_t>(known.try_emplace(row.list, static_cast<int>(known.size())).first->second));
    }
    weight_sum_.assign(known.size(), 0.0);
    std::vector<double> best(known.size(), std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < rows_.size(); ++i) best[list_[i]] = std::min(best[list_[i]], rows_[i].seconds);
    for (size_t i = 0; i < rows_.size(); ++i) {
      weight_.push_back(std::pow(best[list_[i]] / rows_[i].seconds, 1.0 / options_.reach));
      weight_sum_[list_[i]] += weight_.back();
    }
    for (size_t j = 0; j < family_.specs.size(); ++j) start_.push_back(ToFree(j, constants_.values[j]));
  }

  const std::vector<double>& start() const { return start_; }

  FamilyConstants At(const std::vector<double>& free) const {
    FamilyConstants constants = constants_;
    for (size_t j = 0; j < free.size(); ++j) constants.values[j] = FromFree(j, free[j]);
    return constants;
  }
  double Clamp(size_t j, double free) const { return ToFree(j, FromFree(j, free)); }

  // Square root of the weight times the saturated, centred error of each row.
  std::vector<double> Residuals(const std::vector<double>& free) const {
    const auto model = family_.make(accelerator_, At(free));
    std::vector<double> error(rows_.size()), mean(weight_sum_.size(), 0.0);
    for (size_t i = 0; i < rows_.size(); ++i) {
      error[i] = std::log(rows_[i].seconds / model->Score(rows_[i].problem, rows_[i].kernel).total);
      mean[list_[i]] += weight_[i] * error[i];
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      const double centred = error[i] - (1.0 - options_.common) * mean[list_[i]] / weight_sum_[list_[i]];
      error[i] = std::sqrt(weight_[i]) * options_.saturation * std::tanh(centred / options_.saturation);
    }
    return error;
  }

  double Cost(const std::vector<double>& residuals, const std::vector<double>& free) const {
    double sum = 0.0;
    for (const double r : residuals) sum += r * r;
    for (size_t j = 0; j < free.size(); ++j) {
      sum += Prior() * (free[j] - start_[j]) * (free[j] - start_[j]);
    }
    return sum;
  }
  double Prior() const { return options_.prior * static_cast<double>(rows_.size()); }

 private:
  double ToFree(size_t j, double value) const { return family_.specs[j].low > 0.0 ? std::log(value) : value; }
  double FromFree(size_t j, double free) const {
    const ConstantSpec& spec = family_.specs[j];
    return std::clamp(spec.low > 0.0 ? std::exp(free) : free, spec.low, spec.high);
  }

  const FamilyEntry& family_;
  const Accelerator& accelerator_;
  std::span<const CalibrationRow> rows_;
  FitListsOptions options_;
  FamilyConstants constants_;
  std::vector<size_t> list_;
  std::vector<double> weight_, weight_sum_, start_;
};

// Solves A x = b for a symmetric positive definite A (n x n, row by row) by Cholesky's method.
std::vector<double> Solve(std::vector<double> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / a[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return b;
}

}  // namespace

FamilyConstants FitLists(const FamilyEntry& family, const Accelerator& accelerator, DType compute,
                         std::span<const CalibrationRow> rows, const FitListsOptions& options) {
  const Lists lists(family, accelerator, rows, options, InitialConstants(family.family, compute));
  const size_t n = family.specs.size();
  std::vector<double> free = lists.start();
  std::vector<double> residuals = lists.Residuals(free);
  double cost = lists.Cost(residuals, free), damping = 1e-3;
  for (int step = 0; step < options.steps; ++step) {
    std::vector<std::vector<double>> slopes(n);
    for (size_t j = 0; j < n; ++j) {
      std::vector<double> moved = free;
      moved[j] += kDifference;
      slopes[j] = lists.Residuals(moved);
      for (size_t i = 0; i < residuals.size(); ++i) slopes[j][i] = (slopes[j][i] - residuals[i]) / kDifference;
    }
    std::vector<double> normal(n * n, 0.0), gradient(n, 0.0);
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k <= j; ++k) {
        double sum = 0.0;
        for (size_t i = 0; i < residuals.size(); ++i) sum += slopes[j][i] * slopes[k][i];
        normal[j * n + k] = normal[k * n + j] = sum;
      }
      for (size_t i = 0; i < residuals.size(); ++i) gradient[j] -= slopes[j][i] * residuals[i];
      normal[j * n + j] += lists.Prior();
      gradient[j] -= lists.Prior() * (free[j] - lists.start()[j]);
    }
    bool better = false;
    for (int attempt = 0; attempt < 8 && !better; ++attempt) {
      std::vector<double> damped = normal;
      for (size_t j = 0; j < n; ++j) damped[j * n + j] += damping * (normal[j * n + j] + 1e-6);
      const std::vector<double> move = Solve(damped, gradient);
      std::vector<double> next = free;
      for (size_t j = 0; j < n; ++j) next[j] = lists.Clamp(j, free[j] + std::clamp(move[j], -1.0, 1.0));
      const std::vector<double> found = lists.Residuals(next);
      const double next_cost = lists.Cost(found, next);
      better = next_cost < cost * (1.0 - 1e-7);
      if (better) {
        free = next;
        residuals = found;
        cost = next_cost;
        damping = std::max(1e-9, damping * 0.3);
      } else {
        damping *= 4.0;
      }
    }
    if (!better) break;
  }
  FamilyConstants constants = lists.At(free);
  constants.accelerator = accelerator.id;
  return constants;
}

}  // namespace portolan
