#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/validate.h"

namespace portolan {

// How far predicted steps were from published ones, read as an error of each term. A published step is one number: its
// error is charged to the terms by their shares of the predicted step, so that a term's error is the mean over the
// steps, weighted by the term's share,
//   e(c) = sum_i share_i(c) |predicted_i / published_i - 1| / sum_i share_i(c),
// with steps of the other kind of model (see Selection) or vendor left out where enough of the right ones are left.
// An upper bound of nothing: errors of two terms may have cancelled in a step.
struct TermErrors {
  static constexpr double kUnknown = 0.25;
  TermErrors() { of_category.fill(kUnknown); }

  std::array<double, kCategoryCount> of_category{};
  double of_step = kUnknown;  // the plain mean: for changes that move no kernel's time (overlap, host launches)
  std::string basis;          // "published steps of pooled models on nvidia" and their number
};

// One compared step.
struct StepResidual {
  std::string vendor;
  bool is_sequence_model = false;
  double error = 0;                            // |predicted / published - 1|
  std::array<double, kCategoryCount> share{};  // of the predicted step
};

// Of every entry that is predicted and published, known faults among them.
std::vector<StepResidual> StepResiduals(const std::vector<ValidationRow>& rows);

// Whether a model has attention layers: their steps are of other terms than those of pooled models.
bool IsSequenceModel(const Model& model);

// The errors that count for `model` on a chip of `vendor`: of steps of that kind of model on that vendor's chips, or,
// where these hold a term for less than one whole step together, of that kind on all chips, or of all. Without any
// steps: 25 % (the mean error of all published steps kept aside, docs/validation.md, 2026-11-30).
TermErrors TermErrorsFor(const std::vector<StepResidual>& residuals, const Model& model, const std::string& vendor);

// The validation entries of the data directories, priced now. Errors as LoadValidation.
Result<TermErrors> MeasureTermErrors(const Catalogue& catalogue, const std::vector<std::string>& data_dirs,
                                     const Model& model, const std::string& vendor);

}  // namespace portolan
