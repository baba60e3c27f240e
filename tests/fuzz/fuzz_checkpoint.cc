// Any bytes as the state of a checkpoint, or as changes of a good one: the first byte says which. Loading ends with
// progress or an error that names the file; what was loaded is saved and loaded again unchanged.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "engine/checkpoint.h"
#include "engine/job.h"
#include "engine/network.h"
#include "fuzz_file.h"

namespace portolan {
namespace {

const char kJob[] = R"(
model:
  model: tiny
  dense_features: 2
  tables: [{name: a, rows: 3, dim: 4, lookups: 1}]
  blocks:
    - {name: joined, type: concat, inputs: [dense, embeddings]}
    - {name: top, type: mlp, input: joined, widths: [1], last_activation: none}
  training: {dense_optimizer: adagrad, embedding_optimizer: rowwise_adagrad}
recipe: {recipe: r, local_batch: 2, precision: {gemm: fp32, activation: fp32}}
data: {type: synthetic}
steps: 1
)";

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_checkpoint: %s\n", what);
  std::abort();
}

std::unique_ptr<Network> MakeNetwork() {
  const auto find = [](const std::string&, const std::string&) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, "no files here");
  };
  const auto text = YamlValue::Parse(kJob, "job.yaml");
  Require(text.has_value(), "the job cannot be parsed");
  const auto job = ReadJob(*text, find);
  Require(job.has_value(), "the job cannot be read");
  std::vector<std::string> notes;
  const auto options = OptionsFromRecipe(job->model, job->recipe, &notes);
  Require(options.has_value(), "the recipe is refused");
  auto plan = PlanNetwork(job->model, *options);
  Require(plan.has_value(), "the model is refused");
  return std::make_unique<Network>(std::move(*plan), 1);
}

constexpr char kName[] = "the job";

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace portolan;
  static const FuzzFile file("given/step_000000001/state.safetensors");
  static const std::unique_ptr<Network> network = MakeNetwork();
  static const std::string given = file.folder() + "/given", again = file.folder() + "/again";
  std::ofstream(given + "/step_000000001/DONE");
  static const std::string good = [] {
    Require(CheckpointFolder(again, 1).Save(network.get(), {1, 2, "position", kName}).has_value(), "cannot be saved");
    std::ifstream stream(again + "/step_000000001/state.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }();
  if (size > 0 && data[0] % 2 == 1) {
    // Triples: two bytes say where, one what; a last odd byte cuts the file.
    std::string changed = good;
    for (size_t i = 1; i + 3 <= size; i += 3) {
      changed[(data[i] + size_t{256} * data[i + 1]) % changed.size()] = static_cast<char>(data[i + 2]);
    }
    if (size % 3 == 2) changed.resize(changed.size() * data[size - 1] / 256);
    file.Write(reinterpret_cast<const uint8_t*>(changed.data()), changed.size());
  } else {
    file.Write(data, size);
  }
  const auto loaded = CheckpointFolder(given, 3).LoadNewest(network.get(), kName);
  if (!loaded) {
    Require(FormatError(loaded.error()).find("state.safetensors") != std::string::npos, "the error names no file");
    return 0;
  }
  Require(loaded->has_value(), "a whole checkpoint was not seen");
  Require((*loaded)->step >= 0 && (*loaded)->samples >= 0, "negative progress");
  Require(CheckpointFolder(again, 1).Save(network.get(), **loaded).has_value(), "cannot be saved");
  const auto second = CheckpointFolder(again, 1).LoadNewest(network.get(), kName);
  Require(second && second->has_value(), "the saved checkpoint cannot be loaded");
  Require((*second)->step == (*loaded)->step && (*second)->samples == (*loaded)->samples &&
              (*second)->position == (*loaded)->position,
          "progress changed");
  std::filesystem::remove_all(again);
  return 0;
}
