#include <fmt/format.h>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// How large a table may be to live on every device: no exchange for it, but its gradient is all-reduced. More memory
// allows more. kAuto sharding only.
class ReplicateTablesRule : public Rule {
 public:
  const char* name() const override { return "replicate_tables"; }
  const char* published() const override {
    return "HugeCTR MLPerf v3.1 replicates tables of up to 8 MB: 64 x H100 2.96 to 2.48 ms together with a library "
           "release (mlcommons/training_results_v3.0, v3.1)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device holds every table";
      return {};
    }
    if (context.recipe.sharding != Sharding::kAuto) {
      *why_not = "sharding is fixed for all tables";
      return {};
    }
    std::vector<Change> changes;
    for (const double bytes : {0.0, 1e6, 8e6, 32e6, 128e6, 512e6, 2e9, 8e9}) {
      if (bytes == context.recipe.data_parallel_max.value) continue;
      const std::string what =
          bytes == 0 ? "no table is replicated"
                     : fmt::format("tables of up to {:g} MB (rows and state) on every device", bytes * 1e-6);
      changes.push_back(MakeSetting(context, name(), fmt::format("{:g}", bytes), what, MathsClass::kReassociates,
                                    [bytes](Recipe& r) { r.data_parallel_max = Bytes(bytes); }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeReplicateTablesRule() { return std::make_unique<ReplicateTablesRule>(); }

}  // namespace portolan
