#include "recipe/recipe_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class ShardingRule : public Rule {
 public:
  const char* name() const override { return "sharding"; }
  const char* published() const override {
    return "DLRM on 8 x MI355X: table-wise 198,233, row-wise 192,220, data-parallel 165,564 samples/s "
           "(AMD-AGI/Primus-DLRM doc/log.md)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device holds every table";
      return {};
    }
    std::vector<Change> changes;
    struct Option {
      Sharding sharding;
      const char* what;
    };
    for (const Option& option :
         {Option{Sharding::kAuto, "tables whole or split by row where hot or large, balanced over the devices"},
          Option{Sharding::kTable, "every table whole on one device"},
          Option{Sharding::kColumn, "every table split by column over all devices"},
          Option{Sharding::kRow, "every table split by row over all devices"}}) {
      if (option.sharding == context.recipe.sharding && context.recipe.tables.empty()) continue;
      changes.push_back(MakeSetting(context, name(), EnumName(kShardingNames, option.sharding), option.what,
                                    MathsClass::kReassociates, [&option](Recipe& r) {
                                      r.sharding = option.sharding;
                                      r.tables.clear();
                                    }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeShardingRule() { return std::make_unique<ShardingRule>(); }

}  // namespace portolan
