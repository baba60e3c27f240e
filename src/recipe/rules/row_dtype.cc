#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class RowDtypeRule : public Rule {
 public:
  const char* name() const override { return "row_dtype"; }
  std::vector<Change> Propose(const RuleContext& context, std::string*) const override {
    std::vector<Change> changes;
    if (SizeOf(context.recipe.embedding_row) > Bytes(2)) {
      changes.push_back(MakeSetting(context, name(), "fp16", "fp16 embedding rows with stochastic rounding",
                                    MathsClass::kChangesMaths, [](Recipe& r) { r.embedding_row = DType::kFp16; }));
    } else {
      changes.push_back(MakeSetting(context, name(), "fp32", "full fp32 embedding rows, for quality",
                                    MathsClass::kChangesMaths, [](Recipe& r) { r.embedding_row = DType::kFp32; }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeRowDtypeRule() { return std::make_unique<RowDtypeRule>(); }

}  // namespace portolan
