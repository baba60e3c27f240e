#include "select/family.h"

#include <limits>

#include "select/all_families.h"

namespace portolan {

const std::array<const char*, kSlopeCount> kSlopeSuffixes = {":depth", ":fill",     ":traffic", ":tail",  ":depth2",
                                                             ":fill2", ":traffic2", ":breadth", ":height"};

void AppendFactorKeys(const std::string& key, std::span<const char* const> slopes, std::vector<std::string>* keys) {
  keys->push_back(key);
  for (const char* slope : slopes) keys->push_back(key + slope);
}

namespace {

// Asks Supports and Score for each kernel.
class PlainScorer : public KernelScorer {
 public:
  PlainScorer(const FamilyModel& model, std::span<const GemmKernel> kernels)
      : model_(model), kernels_(kernels.begin(), kernels.end()) {}
  void ScoreAll(const GemmProblem& problem, std::span<double> seconds) const override {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      seconds[i] = model_.Supports(problem, kernels_[i]) ? model_.Score(problem, kernels_[i]).total
                                                         : std::numeric_limits<double>::infinity();
    }
  }
  KernelTerms Terms(const GemmProblem& problem, size_t i) const override { return model_.Score(problem, kernels_[i]); }

 private:
  const FamilyModel& model_;
  std::vector<GemmKernel> kernels_;
};

}  // namespace

std::unique_ptr<KernelScorer> FamilyModel::Prepare(std::span<const GemmKernel> kernels) const {
  return std::make_unique<PlainScorer>(*this, kernels);
}

std::vector<std::string> FamilyModel::FactorKeys(const GemmProblem&, const GemmKernel&) const { return {}; }

KernelRegime FamilyModel::Regime(const GemmProblem&, const GemmKernel&) const { return {}; }

const FamilyEntry* FindFamily(KernelFamily family) {
  for (const FamilyEntry* entry : AllFamilies()) {
    if (entry->family == family) return entry;
  }
  return nullptr;
}

FamilyConstants InitialConstants(KernelFamily family, DType compute) {
  FamilyConstants constants;
  constants.family = family;
  constants.compute = compute;
  if (const FamilyEntry* entry = FindFamily(family)) {
    for (const ConstantSpec& spec : entry->specs) constants.values.push_back(spec.initial);
  }
  return constants;
}

}  // namespace portolan
