// predict_cuda_steps CALIBRATION_FOLDER [STEPS [operations]]: the price of a training step on the GPU, from the
// calibration of its kernels alone, against the engine's own time, over models and recipes of which no number was used
// to write the prices. Prints each, the geometric mean of the errors, and Kendall's tau within each model.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loop/optimize_cuda.h"

namespace portolan {
namespace {

struct Case {
  const char* model;
  const char* tables;
  const char* blocks;
  std::vector<int64_t> batches;
};
const Case kCases[] = {
    {"dcnv2",
     "    - {name: large, rows: 4000000, dim: 128, lookups: 3, zipf_exponent: 1.05}\n"
     "    - {name: multi, rows: 4000000, dim: 128, lookups: 100, zipf_exponent: 1.05}\n"
     "    - {name: many, rows: 1000000, dim: 128, lookups: 12, count: 3, zipf_exponent: 1.05}\n"
     "    - {name: small, rows: 20000, dim: 128, lookups: 2, count: 10, zipf_exponent: 1.05}\n"
     "    - {name: tiny, rows: 100, dim: 128, lookups: 1, count: 11}\n",
     R"(
    - {name: bottom, type: mlp, input: dense, widths: [512, 256, 128]}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 3, rank: 512}
    - {name: top, type: mlp, input: cross, widths: [1024, 1024, 512, 256, 1], last_activation: none}
)",
     {65536, 16384}},
    {"dlrm_dot",
     "    - {name: huge, rows: 10000000, dim: 64, lookups: 1, count: 4}\n"
     "    - {name: multi, rows: 1000000, dim: 64, lookups: 20, count: 2, zipf_exponent: 1.1}\n"
     "    - {name: tiny, rows: 1000, dim: 64, lookups: 1, count: 20}\n",
     R"(
    - {name: bottom, type: mlp, input: dense, widths: [512, 256, 64]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [1024, 512, 256, 1], last_activation: none}
)",
     {65536, 16384}},
    {"wide_mlp",
     "    - {name: users, rows: 5000000, dim: 32, lookups: 1, count: 8}\n"
     "    - {name: tags, rows: 200000, dim: 32, lookups: 10, count: 4, zipf_exponent: 0.9}\n",
     R"(
    - {name: joined, type: concat, inputs: [dense, embeddings]}
    - {name: top, type: mlp, input: joined, widths: [2048, 2048, 1024, 1], activation: silu, last_activation: none}
)",
     {32768}},
};

struct Variant {
  const char* name;
  void (*change)(Recipe* recipe);
};
const Variant kVariants[] = {
    {"bf16", [](Recipe* r) { r->gemm = r->activation = DType::kBf16; }},
    {"tf32", [](Recipe* r) { r->gemm = DType::kTf32; }},
    {"fp32", [](Recipe*) {}},
    {"bf16_sgd",
     [](Recipe* r) {
       r->gemm = r->activation = DType::kBf16;
       r->embedding_optimizer = EmbeddingOptimizer::kSgd;
     }},
    {"bf16_adagrad",
     [](Recipe* r) {
       r->gemm = r->activation = DType::kBf16;
       r->embedding_optimizer = EmbeddingOptimizer::kAdagrad;
     }},
    {"bf16_rows_bf16",
     [](Recipe* r) {
       r->gemm = r->activation = DType::kBf16;
       r->embedding_row = DType::kBf16;
     }},
};

Result<Job> MakeJob(const Case& of, int64_t batch) {
  const std::string text = std::string("model:\n  model: ") + of.model + "\n  dense_features: 13\n  tables:\n" +
                           of.tables + "  blocks:" + of.blocks +
                           "  training: {dense_optimizer: adagrad, embedding_optimizer: rowwise_adagrad}\n"
                           "recipe: {recipe: r, local_batch: " +
                           std::to_string(batch) +
                           ", precision: {gemm: fp32, activation: fp32}}\ndata: {type: synthetic}\ndevice: cuda\n"
                           "learning_rate: 0.001\nsteps: 1\n";
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Parse(text, of.model));
  return ReadJob(value, [](const std::string&, const std::string& name) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, name);
  });
}

Status Run(const std::string& folder, int64_t steps, bool show_operations) {
  PORTOLAN_ASSIGN_OR_RETURN(const CudaCalibration calibration,
                            CudaCalibrationOfThisMachine(folder, [](const std::string&, double) {}));
  std::printf("%s, calibrated %s\n%-10s %6s %-15s %10s %10s %8s %8s\n", calibration.device.c_str(),
              calibration.date.c_str(), "model", "batch", "recipe", "predicted", "measured", "error", "spread");
  double logarithms = 0, worst = 0;
  int count = 0, agree = 0, pairs = 0;
  for (const Case& of : kCases) {
    for (const int64_t batch : of.batches) {
      PORTOLAN_ASSIGN_OR_RETURN(const Job base, MakeJob(of, batch));
      PORTOLAN_ASSIGN_OR_RETURN(const std::vector<Batch> batches, ReadSomeBatches(base, 1));
      std::vector<std::array<double, 3>> points;
      for (const Variant& variant : kVariants) {
        Job job = base;
        variant.change(&job.recipe);
        PORTOLAN_ASSIGN_OR_RETURN(const CudaStepPrice price, PriceCudaRecipe(job, job.recipe, batches, calibration));
        PORTOLAN_ASSIGN_OR_RETURN(const auto timed, TimedCudaNetwork::Make(job, job.recipe));
        for (int round = 0; round < 4; ++round) PORTOLAN_RETURN_IF_ERROR(timed->Round(steps));
        const double error = price.step_s / timed->StepSeconds() - 1;
        std::printf("%-10s %6lld %-15s %7.3f ms %7.3f ms %+7.1f%% %7.1f%%\n", of.model, static_cast<long long>(batch),
                    variant.name, price.step_s * 1e3, timed->StepSeconds() * 1e3, 100 * error, 100 * timed->Spread());
        if (show_operations) {
          PORTOLAN_ASSIGN_OR_RETURN(const StepProfile profile, timed->Profile(3));
          for (const auto& [name, seconds] : price.operations) {
            double measured = 0;
            for (const OperationTime& operation : profile.operations) {
              if (operation.name == name) measured += operation.seconds;
            }
            std::printf("    %-28s %8.0f us %8.0f us\n", name.c_str(), seconds * 1e6, measured * 1e6);
          }
          std::printf("    %-28s %11s %8.0f us\n", "a step on the device", "", profile.step_seconds * 1e6);
        }
        std::fflush(stdout);
        logarithms += std::fabs(std::log1p(error));
        if (std::fabs(error) > std::fabs(worst)) worst = error;
        ++count;
        for (const auto& other : points) {
          const double apart = std::fabs(std::log(other[1] / timed->StepSeconds()));
          if (apart <= std::max(other[2], timed->Spread())) continue;
          ++pairs;
          agree += (other[0] < price.step_s) == (other[1] < timed->StepSeconds()) ? 1 : 0;
        }
        points.push_back({price.step_s, timed->StepSeconds(), timed->Spread()});
      }
    }
  }
  std::printf(
      "%d recipes: off by a factor of %.3f in the geometric mean, the worst %+.1f %%; Kendall's tau %.3f over %d "
      "pairs\n",
      count, std::exp(logarithms / std::max(count, 1)), 100 * worst, 2.0 * agree / std::max(pairs, 1) - 1, pairs);
  return {};
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: predict_cuda_steps CALIBRATION_FOLDER [STEPS [operations]]\n");
    return 2;
  }
  const portolan::Status status = portolan::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 20, argc > 3);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
