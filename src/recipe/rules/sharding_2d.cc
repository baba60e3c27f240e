#include <fmt/format.h>

#include "recipe/recipe_names.h"
#include "recipe/replica_groups.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Sharding groups that hold all sharded tables each. Copies are updated apart and averaged, which is another update
// than that of one table. How seldom they may be averaged is a question of quality: the recipe's interval is kept.
class Sharding2dRule : public Rule {
 public:
  const char* name() const override { return "sharding_2d"; }
  const char* published() const override {
    return "two-dimensional sparse parallelism: nearly linear scaling to 4,000 GPUs at equal quality "
           "(arXiv 2508.03854)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    const Cluster& cluster = context.cluster;
    if (cluster.devices < 4) {
      *why_not = "fewer than four devices do not make two groups";
      return {};
    }
    if (context.model.tables.empty() || context.recipe.sharding == Sharding::kDataParallel) {
      *why_not = "no table is sharded";
      return {};
    }
    std::vector<Change> changes;
    if (context.recipe.replicas > 1) {
      changes.push_back(MakeSetting(context, name(), "none", "every table once, over all devices",
                                    MathsClass::kChangesMaths, [](Recipe& r) { r.replicas = 1; }));
    }
    for (int copies = 2; 2 * copies <= cluster.devices; copies *= 2) {
      for (const ReplicaLayout layout : {ReplicaLayout::kStrided, ReplicaLayout::kContiguous}) {
        // In one node both layouts cost the same.
        if (layout == ReplicaLayout::kContiguous && cluster.nodes() == 1) continue;
        if (copies == context.recipe.replicas && layout == context.recipe.replica_layout) continue;
        Change change =
            MakeSetting(context, name(), fmt::format("{} {}", copies, EnumName(kReplicaLayoutNames, layout)),
                        fmt::format("{} groups of {} devices with all tables each, {}; copies averaged every {}",
                                    copies, cluster.devices / copies,
                                    layout == ReplicaLayout::kStrided ? "copies of a shard next to each other"
                                                                      : "a group's devices next to each other",
                                    context.recipe.replica_sync_steps == 1
                                        ? "step"
                                        : fmt::format("{} steps", context.recipe.replica_sync_steps)),
                        MathsClass::kChangesMaths, [copies, layout](Recipe& r) {
                          r.replicas = copies;
                          r.replica_layout = layout;
                        });
        if (ReplicaGroupsOf(change.recipe, cluster)) changes.push_back(std::move(change));
      }
    }
    if (changes.empty()) *why_not = "no other number of groups divides the nodes evenly";
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeSharding2dRule() { return std::make_unique<Sharding2dRule>(); }

}  // namespace portolan
