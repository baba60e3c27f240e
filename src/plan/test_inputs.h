#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/estimate_step.h"
#include "plan/validate.h"

namespace portolan {

// What the tests of this folder read; they run in the source folder.
inline const std::vector<std::string>& TestDataDirs() {
  static const std::vector<std::string> kDirs = {"data"};
  return kDirs;
}

inline const Catalogue& TestCatalogue() {
  static const Catalogue kCatalogue = [] {
    Result<Catalogue> catalogue = Catalogue::Load(TestDataDirs());
    if (!catalogue) ADD_FAILURE() << FormatError(catalogue.error());
    return catalogue ? *catalogue : Catalogue();
  }();
  return kCatalogue;
}

template <typename T>
T ValueOrFail(Result<T> result) {
  if (result) return std::move(*result);
  ADD_FAILURE() << FormatError(result.error());
  return T();
}

inline Cluster TestCluster(const std::string& text) { return ValueOrFail(TestCatalogue().ParseCluster(text)); }
inline Model DataModel(const std::string& id) { return ValueOrFail(LoadModel("data/models/" + id + ".yaml")); }
inline Recipe DataRecipe(const std::string& id) { return ValueOrFail(LoadRecipe("data/recipes/" + id + ".yaml")); }

inline Model ModelFromText(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "model.yaml");
  if (!value) {
    ADD_FAILURE() << FormatError(value.error());
    return {};
  }
  return ValueOrFail(ReadModel(*value));
}

inline StepEstimate EstimateOrFail(const Model& model, const Recipe& recipe, const Cluster& cluster) {
  return ValueOrFail(EstimateStep(model, recipe, cluster));
}

inline double SumOfBreakdown(const StepEstimate& estimate) {
  double sum = 0;
  for (const ExposedTerm& term : estimate.breakdown) sum += term.time.value;
  return sum;
}

inline double ExposedSeconds(const StepEstimate& estimate, const std::string& name) {
  double sum = 0;
  for (const ExposedTerm& term : estimate.breakdown) sum += term.name == name ? term.time.value : 0.0;
  return sum;
}

}  // namespace portolan
