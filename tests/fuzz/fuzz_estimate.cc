// A model and a recipe (after a line "---"; without one, the default recipe): whatever both readers accept can be
// priced on 8 x H100, in less than a second in a release build, and the answer is finite and its parts are not
// negative.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "plan/estimate_step.h"

namespace portolan {
namespace {

#ifdef PORTOLAN_SANITIZED
constexpr double kSlower = 10;  // with sanitizers and without optimisation
#else
constexpr double kSlower = 1;
#endif

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_estimate: %s\n", what);
  std::abort();
}

bool Sane(double value) { return std::isfinite(value) && value >= 0; }

void Check(const StepEstimate& estimate) {
  Require(std::isfinite(estimate.step.value) && estimate.step > Seconds(0), "step time");
  Require(Sane(estimate.samples_per_s), "samples per second");
  double sum = 0;
  for (const ExposedTerm& term : estimate.breakdown) {
    Require(Sane(term.time.value), "exposed term");
    sum += term.time.value;
  }
  Require(std::abs(sum - estimate.step.value) <= 1e-6 * estimate.step.value, "sum of the breakdown");
  for (const Seconds& busy : estimate.busy) Require(Sane(busy.value), "busy time");
  for (const Task& task : estimate.graph.tasks) Require(Sane(task.estimate.total.value), "task");
  const MemoryEstimate& memory = estimate.memory;
  for (const Bytes& part :
       {memory.tables, memory.table_state, memory.dense_parameters, memory.dense_gradients, memory.dense_state,
        memory.activations, memory.transient, memory.exchange_buffers, memory.reserve, memory.total}) {
    Require(Sane(part.value), "memory");
  }
}

const Cluster& EightH100() {
  static const Cluster kCluster = [] {
    const auto catalogue = Catalogue::Load({PORTOLAN_DATA_DIR});
    Require(catalogue.has_value(), "the catalogue does not load");
    const auto cluster = catalogue->ParseCluster("8xh100");
    Require(cluster.has_value(), "8xh100 is unknown");
    return *cluster;
  }();
  return kCluster;
}

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace portolan;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find("\n---\n");
  const auto model_yaml = YamlValue::Parse(text.substr(0, cut), "model.yaml");
  if (!model_yaml) return 0;
  const auto model = ReadModel(*model_yaml);
  if (!model) return 0;
  Recipe recipe = DefaultRecipe();
  if (cut != std::string::npos) {
    const auto recipe_yaml = YamlValue::Parse(text.substr(cut + 5), "recipe.yaml");
    if (!recipe_yaml) return 0;
    const auto read = ReadRecipe(*recipe_yaml);
    if (!read) return 0;
    recipe = *read;
  }
  const Cluster& cluster = EightH100();
  const auto begin = std::chrono::steady_clock::now();
  const auto estimate = EstimateStep(*model, recipe, cluster);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (estimate) Check(*estimate);
  if (!estimate) Require(!estimate.error().message.empty(), "an error without text");
  Require(seconds < 1.0 * kSlower, "more than a second");
  return 0;
}
