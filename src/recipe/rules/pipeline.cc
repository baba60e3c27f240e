#include "recipe/recipe_names.h"
#include "recipe/rules/all_rules.h"
#include "recipe/rules/setting.h"

namespace portolan {
namespace {

class PipelineRule : public Rule {
 public:
  const char* name() const override { return "pipeline"; }
  const char* published() const override {
    return "TorchRec SDD pipeline: +7 to 15 % throughput (meta-pytorch/torchrec ca71ae1a)";
  }
  std::vector<Change> Propose(const RuleContext& context, std::string*) const override {
    struct Option {
      Pipeline pipeline;
      const char* what;
    };
    std::vector<Change> changes;
    for (const Option& option : {Option{Pipeline::kIndexExchange, "exchange the next batch's indices during this one"},
                                 Option{Pipeline::kEmbedding, "and look its rows up as soon as the tables are updated"},
                                 Option{Pipeline::kNone, "finish one batch before the next"}}) {
      if (option.pipeline == context.recipe.pipeline) continue;
      changes.push_back(MakeSetting(context, name(), EnumName(kPipelineNames, option.pipeline), option.what,
                                    MathsClass::kExact, [&option](Recipe& r) { r.pipeline = option.pipeline; }));
    }
    return changes;
  }
};

}  // namespace

std::unique_ptr<Rule> MakePipelineRule() { return std::make_unique<PipelineRule>(); }

}  // namespace portolan
