#include <fmt/format.h>

#include <algorithm>

#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

// A narrower input format of the matrix units, in all products or block by block.
class GemmDtypeRule : public Rule {
 public:
  const char* name() const override { return "gemm_dtype"; }
  const char* published() const override {
    return "LoKA fp8 recipe: up to +20 % training throughput on H100 to MI350X; plain fp8 hurts quality "
           "(arXiv 2605.10886)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const override {
    std::vector<Change> changes;
    const Recipe& recipe = context.recipe;
    for (const DType dtype : {DType::kBf16, DType::kFp8E4m3}) {
      if (SizeOf(dtype) >= SizeOf(recipe.gemm) || !HasRate(context, dtype)) continue;
      changes.push_back(MakeSetting(context, name(), DTypeName(dtype),
                                    fmt::format("matrix products in {}", DTypeName(dtype)), MathsClass::kChangesMaths,
                                    [dtype](Recipe& r) {
                                      r.gemm = dtype;
                                      r.gemm_by_block.clear();
                                      if (dtype == DType::kBf16) r.activation = DType::kBf16;
                                    }));
    }
    AddSingleBlocks(context, &changes);
    if (changes.empty()) *why_not = "the device has no narrower matrix format";
    return changes;
  }

 private:
  // Of the blocks with the most products.
  static constexpr size_t kBlocks = 6;

  static bool HasRate(const RuleContext& context, DType dtype) {
    return context.cluster.accelerator.peak_matrix[dtype] > FlopsPerSecond(0);
  }

  // fp8 in one block more, or 16 bits in one more, than now.
  static void AddSingleBlocks(const RuleContext& context, std::vector<Change>* changes) {
    const Recipe& recipe = context.recipe;
    if (SizeOf(recipe.activation) > Bytes(2) || !HasRate(context, DType::kFp8E4m3)) return;
    std::vector<std::pair<double, std::string>> blocks;  // multiplications a sample, to rank them
    for (const Block& block : context.model.blocks) {
      const double weight = BlockParameters(context.model, block) * block.shape.tokens;
      if (weight > 0 && !std::holds_alternative<NormBlock>(block.body)) blocks.push_back({weight, block.name});
    }
    if (blocks.size() < 2) return;
    std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < std::min(kBlocks, blocks.size()); ++i) {
      const std::string& block = blocks[i].second;
      const bool narrow = SizeOf(recipe.GemmOf(block)) < Bytes(2);
      const DType next = narrow ? recipe.activation : DType::kFp8E4m3;
      changes->push_back(MakeSetting(context, "gemm_dtype", fmt::format("{} in {}", DTypeName(next), block),
                                     fmt::format("matrix products of block '{}' in {}", block, DTypeName(next)),
                                     MathsClass::kChangesMaths, [next, &block](Recipe& r) {
                                       r.gemm_by_block.erase(block);
                                       if (r.gemm != next) r.gemm_by_block[block] = next;
                                     }));
    }
  }
};

}  // namespace

std::unique_ptr<Rule> MakeGemmDtypeRule() { return std::make_unique<GemmDtypeRule>(); }

}  // namespace portolan
