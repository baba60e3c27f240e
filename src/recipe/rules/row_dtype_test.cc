#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(RowDtypeRuleTest, NarrowerAndWider) {
  RuleTester test(MakeRowDtypeRule());
  const Change change = test.Get("fp16", MathsClass::kChangesMaths, {"embedding_row"});
  test.recipe() = change.recipe;
  test.Get("fp32", MathsClass::kChangesMaths, {"embedding_row"});
}

}  // namespace
}  // namespace portolan
