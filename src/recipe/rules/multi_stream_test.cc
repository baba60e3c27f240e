#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(MultiStreamRuleTest, ThereAndBack) {
  RuleTester test(MakeMultiStreamRule());
  const Change change = test.Get("multi_stream", MathsClass::kExact, {"concurrency"});
  test.recipe() = change.recipe;
  test.Get("single_stream", MathsClass::kExact, {"concurrency"});
}

}  // namespace
}  // namespace portolan
