#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// Tables dealt to devices by a search on the estimated step in the place of longest processing time first.
class BalanceRule : public Rule {
 public:
  const char* name() const override { return "balance"; }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (context.cluster.devices == 1) {
      *why_not = "one device holds every table";
      return {};
    }
    if (context.recipe.balance == Balance::kSearched) {
      *why_not = "the placement is searched already";
      return {};
    }
    return {MakeSetting(context, name(), "searched",
                        "tables dealt and split by a search on the estimated step instead of hottest first",
                        MathsClass::kReassociates, [](Recipe& r) { r.balance = Balance::kSearched; })};
  }
};

}  // namespace

std::unique_ptr<Rule> MakeBalanceRule() { return std::make_unique<BalanceRule>(); }

}  // namespace portolan
