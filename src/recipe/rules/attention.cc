#include <algorithm>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

bool HasBlock(const Model& model, bool (*is)(const Block&)) {
  return std::any_of(model.blocks.begin(), model.blocks.end(), is);
}

bool IsAttention(const Block& block) {
  return std::holds_alternative<TransformerBlock>(block.body) || std::holds_alternative<HstuBlock>(block.body);
}

class AttentionRule : public Rule {
 public:
  const char* name() const override { return "attention"; }
  const char* published() const override {
    return "DLRMv3 on 8 x MI350X: PyTorch to Triton attention with bf16 190 to 93 ms (mlcommons/training, "
           "recommendation_v4 training_recipe.md); Triton to CUTLASS HSTU on H100 115.8 to 302.6 TFLOP/s "
           "(NVIDIA/recsys-examples)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    if (!HasBlock(context.model, IsAttention)) {
      *why_not = "the model has no attention";
      return {};
    }
    std::vector<Change> changes;
    if (context.recipe.attention == AttentionImplementation::kFramework) {
      changes.push_back(MakeSetting(context, name(), "triton", "fused Triton attention instead of the framework's",
                                    MathsClass::kReassociates,
                                    [](Recipe& r) { r.attention = AttentionImplementation::kTriton; }));
    }
    if (context.recipe.attention != AttentionImplementation::kVendorTuned) {
      changes.push_back(MakeSetting(
          context, name(), "vendor",
          "attention kernel tuned for the device (cuDNN, FlashAttention, CUTLASS; CK, AITER, TLX)",
          MathsClass::kReassociates, [](Recipe& r) { r.attention = AttentionImplementation::kVendorTuned; }));
    }
    if (changes.empty()) *why_not = "the vendor's kernel is used already";
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakeAttentionRule() { return std::make_unique<AttentionRule>(); }

}  // namespace portolan
