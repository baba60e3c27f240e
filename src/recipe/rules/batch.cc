#include <fmt/format.h>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Not a matter of rounding but of convergence: the objective counts the samples that a batch needs, where known.
class BatchRule : public Rule {
 public:
  const char* name() const override { return "batch"; }
  const char* published() const override {
    return "batch 4 to 16 on MI300X and MI325X: +51 % (unsloth-zoo #945); DLRMv4 needs 69.3, 87.7 and 113.0 M samples "
           "at "
           "8,192, 16,384 and 32,768 (mlcommons/training README)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string*) const override {
    std::vector<Change> changes;
    const int64_t batch = context.recipe.GlobalBatch(context.cluster.devices);
    for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
      const int64_t revised = static_cast<int64_t>(static_cast<double>(batch) * factor);
      if (revised < context.cluster.devices) continue;
      changes.push_back(MakeSetting(context, name(), std::to_string(revised), fmt::format("global batch {}", revised),
                                    MathsClass::kChangesMaths, [revised](Recipe& r) {
                                      r.global_batch = revised;
                                      r.local_batch = 0;
                                    }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeBatchRule() { return std::make_unique<BatchRule>(); }

}  // namespace portolan
