#include "plan/term_errors.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

namespace portolan {
namespace {

// Steps that hold a term for less than this many whole steps together say little of it.
constexpr double kLeastEvidence = 1.0;

struct Selection {
  std::string words;
  std::function<bool(const StepResidual&)> takes;
};

}  // namespace

bool IsSequenceModel(const Model& model) {
  for (const Block& block : model.blocks) {
    if (std::holds_alternative<TransformerBlock>(block.body) || std::holds_alternative<HstuBlock>(block.body)) {
      return true;
    }
  }
  return false;
}

std::vector<StepResidual> StepResiduals(const std::vector<ValidationRow>& rows) {
  std::vector<StepResidual> residuals;
  for (const ValidationRow& row : rows) {
    if (!row.predicted || !row.entry.step || row.predicted->value <= 0) continue;
    StepResidual residual;
    residual.vendor = row.vendor;
    residual.is_sequence_model = row.is_sequence_model;
    residual.error = std::abs(row.RelativeError());
    for (const ExposedTerm& term : row.breakdown) {
      for (int c = 0; c < kCategoryCount; ++c) {
        if (term.name != CategoryName(static_cast<Category>(c))) continue;
        residual.share[static_cast<size_t>(c)] += term.time / *row.predicted;
      }
    }
    residuals.push_back(std::move(residual));
  }
  return residuals;
}

TermErrors TermErrorsFor(const std::vector<StepResidual>& residuals, const Model& model, const std::string& vendor) {
  const bool sequence = IsSequenceModel(model);
  const char* kind = sequence ? "sequence" : "pooled";
  const Selection selections[] = {
      {fmt::format("{} models on {}", kind, vendor),
       [&](const StepResidual& r) { return r.is_sequence_model == sequence && r.vendor == vendor; }},
      {fmt::format("{} models", kind), [&](const StepResidual& r) { return r.is_sequence_model == sequence; }},
      {"all models", [](const StepResidual&) { return true; }}};
  TermErrors errors;
  errors.basis = "no published step";
  std::array<bool, kCategoryCount> known{};
  bool step_known = false;
  for (const Selection& selection : selections) {
    std::array<double, kCategoryCount> weight{}, sum{};
    double steps = 0, step_sum = 0;
    for (const StepResidual& residual : residuals) {
      if (!selection.takes(residual)) continue;
      steps += 1;
      step_sum += residual.error;
      for (size_t c = 0; c < weight.size(); ++c) {
        weight[c] += residual.share[c];
        sum[c] += residual.share[c] * residual.error;
      }
    }
    const bool last = &selection == &selections[2];
    for (size_t c = 0; c < weight.size(); ++c) {
      if (known[c] || weight[c] <= 0 || (weight[c] < kLeastEvidence && !last)) continue;
      known[c] = true;
      errors.of_category[c] = sum[c] / weight[c];
    }
    if (!step_known && steps > 0) {
      step_known = true;
      errors.of_step = step_sum / steps;
      errors.basis = fmt::format("{:.0f} published steps of {}", steps, selection.words);
    }
  }
  return errors;
}

Result<TermErrors> MeasureTermErrors(const Catalogue& catalogue, const std::vector<std::string>& data_dirs,
                                     const Model& model, const std::string& vendor) {
  PORTOLAN_ASSIGN_OR_RETURN(const std::vector<ValidationEntry> entries, LoadValidation(data_dirs));
  const std::vector<ValidationRow> rows = RunValidation(entries, catalogue, data_dirs, SharedStepConstants());
  return TermErrorsFor(StepResiduals(rows), model, vendor);
}

}  // namespace portolan
