#include <fmt/format.h>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// The dense gradients of the micro-batches are summed; fused embedding updates happen once a micro-batch, which is
// another update than one a step.
class AccumulationRule : public Rule {
 public:
  const char* name() const override { return "accumulation"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    std::vector<Change> changes;
    const double local =
        static_cast<double>(context.recipe.GlobalBatch(context.cluster.devices)) / context.cluster.devices;
    for (const int64_t steps : {1, 2, 4, 8}) {
      if (steps == context.recipe.accumulation_steps || local / static_cast<double>(steps) < 1) continue;
      changes.push_back(MakeSetting(context, name(), std::to_string(steps),
                                    steps == 1 ? "the whole local batch at once"
                                               : fmt::format("{} micro-batches a step, gradients summed", steps),
                                    MathsClass::kChangesMaths, [steps](Recipe& r) { r.accumulation_steps = steps; }));
    }
    if (changes.empty()) *why_not = "a device has one sample a step";
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeAccumulationRule() { return std::make_unique<AccumulationRule>(); }

}  // namespace portolan
