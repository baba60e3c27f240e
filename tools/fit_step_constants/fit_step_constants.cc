// Fits the shared step constants to the validation entries marked `use: fit` and prints them, then the error on each
// chip of constants fitted to all the others. The values go into src/plan/step_constants.cc.
#include <fmt/format.h>

#include <cstdio>

#include "plan/fit_constants.h"

int main(int argc, char** argv) {
  using namespace portolan;
  const std::vector<std::string> dirs = {argc > 1 ? argv[1] : PORTOLAN_DATA_DIR};
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "fit_step_constants: %s\n", FormatError(error).c_str());
    return ExitCode(error.code);
  };
  const auto catalogue = Catalogue::Load(dirs);
  if (!catalogue) return fail(catalogue.error());
  const auto entries = LoadValidation(dirs);
  if (!entries) return fail(entries.error());
  const auto points = FitPoints(*entries, *catalogue, dirs);
  if (!points) return fail(points.error());

  const StepConstants constants = FitStepConstants(*points);
  fmt::print("{:<20} {:>10} {:>10} {:>8}\n", "constant", "prior", "fitted", "spread");
  for (const FittedConstant& fitted : FittedConstants()) {
    const double value = fitted.factor != nullptr ? constants.*fitted.factor : constants.step_overhead.value;
    fmt::print("{:<20} {:>10.4g} {:>10.4g} {:>8.2f}\n", fitted.name, fitted.prior, value, fitted.spread);
  }
  fmt::print("\n{:<28} {:>8}\n", "fitted to", "error");
  for (const FitPoint& point : *points) {
    fmt::print("{:<28} {:>+7.1f}%\n", point.id, 100 * FitError(point, constants));
  }
  fmt::print("\n{:<12} {:<28} {:>8}\n", "left out", "step", "error");
  for (const LeaveOneOut& left_out : FitLeavingEachOut(*points)) {
    for (const auto& [id, error] : left_out.errors) {
      fmt::print("{:<12} {:<28} {:>+7.1f}%\n", left_out.accelerator, id, 100 * error);
    }
  }
  return 0;
}
