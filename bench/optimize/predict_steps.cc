// predict_steps CALIBRATION_FOLDER [--phases]: the price of a training step, from the calibration alone, against the
// engine's own time, over models and recipes of which no number was used to write the prices. Prints each, the
// geometric mean of the errors, and how far the order of the recipes of a model is met (Kendall's tau over the pairs
// whose measured times differ by more than their spread).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "loop/cpu_changes.h"
#include "loop/turns.h"

namespace portolan {
namespace {

struct Case {
  const char* model;
  const char* tables;
  const char* blocks;
  std::vector<int64_t> batches;
};

const Case kCases[] = {
    {"dot_small",
     "    - {name: large, rows: 200000, dim: 32, lookups: 1, count: 2, zipf_exponent: 1.05}\n"
     "    - {name: medium, rows: 20000, dim: 32, lookups: 2, count: 3, zipf_exponent: 1.05}\n"
     "    - {name: small, rows: 500, dim: 32, lookups: 1, count: 3}\n",
     R"(
    - {name: bottom, type: mlp, input: dense, widths: [128, 32]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [128, 64, 1], last_activation: none}
)",
     {512, 2048}},
    {"dot_wide",
     "    - {name: huge, rows: 1000000, dim: 64, lookups: 1, count: 3}\n"
     "    - {name: multi, rows: 300000, dim: 64, lookups: 8, count: 2, zipf_exponent: 1.1}\n"
     "    - {name: tiny, rows: 100, dim: 64, lookups: 1, count: 15}\n",
     R"(
    - {name: bottom, type: mlp, input: dense, widths: [512, 256, 64]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [512, 256, 1], last_activation: none}
)",
     {1024, 4096}},
    {"cross",
     "    - {name: items, rows: 500000, dim: 16, lookups: 1, count: 4, zipf_exponent: 0.9}\n"
     "    - {name: tags, rows: 5000, dim: 16, lookups: 3, count: 6, zipf_exponent: 1.1}\n",
     R"(
    - {name: bottom, type: mlp, input: dense, widths: [64, 16]}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 2, rank: 48}
    - {name: top, type: mlp, input: cross, widths: [200, 100, 1], last_activation: none}
)",
     {512, 3000}},
    {"mlp_only",
     "    - {name: users, rows: 50000, dim: 8, lookups: 1, count: 2}\n",
     R"(
    - {name: joined, type: concat, inputs: [dense, embeddings]}
    - {name: top, type: mlp, input: joined, widths: [300, 300, 300, 1], activation: silu, last_activation: none}
)",
     {1024}},
};

const char* kRecipes[][2] = {
    {"fused", ""},
    {"port", "embedding: {kernels: per_table, update: separate}, execution: {fusion: eager}"},
    {"bf16", "precision: {gemm: bf16}"},
    {"eager", "execution: {fusion: eager}"},
    {"separate", "embedding: {update: separate}"},
    {"rows_bf16", "precision: {embedding_row: bf16}"},
    {"adagrad", "embedding: {optimizer: adagrad}"},
};

Result<Job> MakeJob(const Case& of, int64_t batch, const char* recipe) {
  std::string text = std::string("model:\n  model: ") + of.model + "\n  dense_features: 13\n  tables:\n" + of.tables +
                     "  blocks:" + of.blocks +
                     "  training: {dense_optimizer: adagrad, embedding_optimizer: rowwise_adagrad}\n"
                     "recipe: {recipe: r, local_batch: " +
                     std::to_string(batch);
  const std::string settings = recipe;
  const std::string precision = "precision: {activation: fp32, ";
  if (settings.find("precision: {") == std::string::npos) text += ", precision: {gemm: fp32, activation: fp32}";
  if (!settings.empty()) {
    std::string filled = settings;
    const size_t at = filled.find("precision: {");
    if (at != std::string::npos) {
      filled.replace(at, std::strlen("precision: {"), precision);
      if (filled.find("gemm:") == std::string::npos) filled.insert(at + precision.size(), "gemm: fp32, ");
    }
    text += ", " + filled;
  }
  text += "}\ndata: {type: synthetic}\nsteps: 1\n";
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Parse(text, of.model));
  return ReadJob(value, [](const std::string&, const std::string& name) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, name);
  });
}

struct Point {
  double predicted, measured, spread;
};

Status Run(const std::string& folder, bool show_phases) {
  PORTOLAN_ASSIGN_OR_RETURN(const Calibration calibration, ReadCalibration(folder));
  SpeedProbe probe;
  double logarithms = 0;
  int count = 0, agree = 0, pairs = 0;
  std::printf("%-10s %6s %-10s %10s %10s %8s %8s %6s\n", "model", "batch", "recipe", "predicted", "measured", "error",
              "spread", "speed");
  for (const Case& of : kCases) {
    for (const int64_t batch : of.batches) {
      std::vector<Batch> batches;
      std::vector<Point> points;
      for (const auto& [name, settings] : kRecipes) {
        PORTOLAN_ASSIGN_OR_RETURN(const Job job, MakeJob(of, batch, settings));
        PORTOLAN_ASSIGN_OR_RETURN(const auto timed, TimedNetwork::Make(job, job.recipe));
        if (batches.empty()) {
          PORTOLAN_ASSIGN_OR_RETURN(
              const auto reader, MakeReader(job.data, timed->network().plan().Schema(job.model), DataSplit::kTrain, 0));
          for (int i = 0; i < 12; ++i) {
            PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome, reader->Next(batch, &batches.emplace_back()));
            if (outcome == ReadOutcome::kEnd) return MakeError(ErrorCode::kInvalidValue, "no data");
          }
        }
        PORTOLAN_ASSIGN_OR_RETURN(StepPrice price, PriceRecipe(job, job.recipe, batches, calibration));
        PORTOLAN_RETURN_IF_ERROR(timed->Round(batches));
        std::vector<double> slow;
        TimedNetwork& rounds = *timed;
        rounds.ForgetRounds();
        for (int round = 0; round < 3; ++round) {
          slow.push_back(probe.Seconds() / calibration.probe_s);
          PORTOLAN_RETURN_IF_ERROR(rounds.Round(batches));
        }
        price.Scale(MedianOf(slow));
        const Point point{price.Total(), rounds.StepSeconds(), rounds.Spread()};
        points.push_back(point);
        logarithms += std::fabs(std::log(point.predicted / point.measured));
        ++count;
        std::printf("%-10s %6lld %-10s %7.3f ms %7.3f ms %+7.1f%% %7.1f%% %6.2f\n", of.model,
                    static_cast<long long>(batch), name, point.predicted * 1e3, point.measured * 1e3,
                    100 * (point.predicted / point.measured - 1), 100 * point.spread, MedianOf(slow));
        if (!show_phases) continue;
        for (const auto& [phase, seconds] : price.Phases()) {
          for (const auto& [same, measured] : rounds.Phases()) {
            if (same != phase) continue;
            std::printf("    %-22s %10.1f us %10.1f us %+7.1f%%\n", phase.c_str(), seconds * 1e6, measured * 1e6,
                        100 * (seconds / measured - 1));
          }
        }
      }
      for (size_t a = 0; a < points.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          const double apart = std::fabs(std::log(points[a].measured / points[b].measured));
          if (apart <= std::max(points[a].spread, points[b].spread)) continue;
          ++pairs;
          agree += (points[a].predicted < points[b].predicted) == (points[a].measured < points[b].measured) ? 1 : 0;
        }
      }
    }
  }
  std::printf("%d recipes: off by a factor of %.3f in the geometric mean; Kendall's tau %.3f over %d pairs\n", count,
              std::exp(logarithms / count), 2.0 * agree / std::max(pairs, 1) - 1, pairs);
  return {};
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "predict_steps CALIBRATION_FOLDER [--phases]\n");
    return 2;
  }
  const auto status = portolan::Run(argv[1], argc > 2 && std::strcmp(argv[2], "--phases") == 0);
  if (!status) std::fprintf(stderr, "%s\n", portolan::FormatError(status.error()).c_str());
  return status ? 0 : 1;
}
