#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(MergeTablesRuleTest, OneKernelADimension) {
  RuleTester test(MakeTableKernelsRule());
  EXPECT_EQ(test.WhyNot(), "tables of one dimension share a kernel already");
  test.recipe().table_kernels = TableKernels::kPerTable;
  test.Get("batched", MathsClass::kExact, {"kernels"});
}

}  // namespace
}  // namespace portolan
