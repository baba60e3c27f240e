#include "recipe/rules/all_rules.h"
#include "recipe/rules/test_context.h"

namespace portolan {
namespace {

TEST(ExchangeDtypeRuleTest, TakesTheFormatOfTheActivations) {
  RuleTester test(MakeExchangeDtypeRule());
  const Change change = test.Get("bf16", MathsClass::kReassociates, {"embedding_forward", "embedding_backward"});
  EXPECT_EQ(change.recipe.embedding_forward_comm, DType::kBf16);
  test.recipe().activation = DType::kFp16;
  EXPECT_EQ(test.Options(), Options{"fp16"});
}

TEST(ExchangeDtypeRuleTest, OneWideDirectionIsEnough) {
  RuleTester test(MakeExchangeDtypeRule());
  test.recipe().embedding_forward_comm = DType::kBf16;
  test.Get("bf16", MathsClass::kReassociates, {"embedding_backward"});
}

TEST(ExchangeDtypeRuleTest, DoesNotApply) {
  RuleTester test(MakeExchangeDtypeRule());
  test.On("h100");
  EXPECT_EQ(test.WhyNot(), "one device exchanges nothing");
  test.On("8xh100");
  test.recipe().activation = DType::kFp32;
  test.recipe().embedding_forward_comm = test.recipe().embedding_backward_comm = DType::kFp32;
  EXPECT_EQ(test.WhyNot(), "rows are exchanged in fp32 already");
  test.recipe().activation = DType::kBf16;
  test.recipe().embedding_forward_comm = test.recipe().embedding_backward_comm = DType::kBf16;
  EXPECT_EQ(test.WhyNot(), "rows are exchanged in bf16 already");
  // Narrower than the activations already: not widened.
  test.recipe().embedding_forward_comm = test.recipe().embedding_backward_comm = DType::kFp8E4m3;
  EXPECT_EQ(test.WhyNot(), "rows are exchanged in fp8_e4m3 already");
}

}  // namespace
}  // namespace portolan
