#include "plan/test_inputs.h"

namespace portolan {
namespace {

// OneTrans-Large with packed histories (500 of 1,500 tokens are real) and, as published or for all layers alike, the
// queries of its pyramid.
enum class Queries { kPyramid, kAll };
StepEstimate Packed(Queries queries) {
  Model model = DataModel("onetrans_large");
  if (queries == Queries::kAll) {
    for (Block& block : model.blocks) {
      auto* layers = std::get_if<TransformerBlock>(&block.body);
      if (layers != nullptr) layers->query_tokens.assign(static_cast<size_t>(layers->layers), 1516);
    }
    EXPECT_TRUE(model.InferShapes());
  }
  Recipe recipe = DataRecipe("onetrans_primus");
  recipe.structure = {{"jagged_packing", 1}};
  return EstimateOrFail(model, recipe, TestCluster("8xmi355x"));
}

// AMD-AGI/Primus-DLRM, branch chcai/jagged, commit e97cdd6: on packed histories the pyramid gives +24 % throughput. A
// user's layer has min(schedule, 500) queries of 1500, 1288, 1076, 864, 652, 440, 228, 16, and 16 tokens more: 3,312
// token layers instead of 4,128, so that +24.6 % is what layers alone would gain. Here tokenizer and head are beside
// them, and are not made less.
TEST(JaggedTest, PyramidOnPackedHistories) {
  const StepEstimate with = Packed(Queries::kPyramid), without = Packed(Queries::kAll);
  const double gain = without.step / with.step;
  EXPECT_NEAR(gain, 1.24, 0.1 * 1.24);
  EXPECT_LT(gain, 4128.0 / 3312.0);
  EXPECT_LT(with.memory.total, without.memory.total);
}

}  // namespace
}  // namespace portolan
