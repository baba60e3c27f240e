// predict_steps CALIBRATION_FOLDER [--phases] [JOB.yaml...]: the price of a training step, from the calibration alone,
// against the engine's own time, over models and recipes of which no number was used to write the prices, or the jobs
// named, each in seven recipes. Prints each, the geometric mean of the errors, and how far the order of the recipes of
// a model is met (Kendall's tau over the pairs whose measured times differ by more than their spread).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "loop/cpu_changes.h"
#include "loop/settle_threads.h"
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
     {512, 2048}},
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

struct Variant {
  const char* name;
  void (*change)(Recipe* recipe);
};
const Variant kVariants[] = {
    {"fused", [](Recipe*) {}},
    {"port", [](Recipe* r) { *r = PortedRecipe(*r); }},
    {"bf16", [](Recipe* r) { r->gemm = DType::kBf16; }},
    {"eager", [](Recipe* r) { r->fusion = Fusion::kEager; }},
    {"separate", [](Recipe* r) { r->embedding_update = EmbeddingUpdate::kSeparate; }},
    {"rows_bf16", [](Recipe* r) { r->embedding_row = DType::kBf16; }},
    {"adagrad", [](Recipe* r) { r->embedding_optimizer = EmbeddingOptimizer::kAdagrad; }},
};

Result<std::string> NoFile(const std::string&, const std::string& name) {
  return MakeError(ErrorCode::kNotFound, name);
}

Result<Job> MakeJob(const Case& of, int64_t batch) {
  const std::string text = std::string("model:\n  model: ") + of.model + "\n  dense_features: 13\n  tables:\n" +
                           of.tables + "  blocks:" + of.blocks +
                           "  training: {dense_optimizer: adagrad, embedding_optimizer: rowwise_adagrad}\n"
                           "recipe: {recipe: r, local_batch: " +
                           std::to_string(batch) +
                           ", precision: {gemm: fp32, activation: fp32}}\ndata: {type: synthetic}\nsteps: 1\n";
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Parse(text, of.model));
  return ReadJob(value, NoFile);
}

class Comparison {
 public:
  Comparison(const Calibration& calibration, bool show_phases) : calibration_(calibration), show_phases_(show_phases) {
    std::printf("%-14s %6s %-10s %10s %10s %8s %8s  %s\n", "model", "batch", "recipe", "predicted", "measured", "error",
                "spread", "slower: products, elementwise, lookups, updates");
  }

  // All recipes of a job are measured in turns: a machine's speed changes between them otherwise.
  Status Add(const Job& base) {
    std::vector<Batch> batches;
    std::vector<Entry> entries;
    for (const Variant& variant : kVariants) {
      Entry& entry = entries.emplace_back();
      entry.variant = variant.name;
      entry.job = std::make_unique<Job>(base);
      variant.change(&entry.job->recipe);
      PORTOLAN_ASSIGN_OR_RETURN(entry.timed, TimedNetwork::Make(*entry.job, entry.job->recipe));
      if (batches.empty()) {
        const NetworkPlan& plan = entry.timed->network().plan();
        PORTOLAN_ASSIGN_OR_RETURN(const auto reader,
                                  MakeReader(base.data, plan.Schema(base.model), DataSplit::kTrain, base.eval_samples));
        for (int i = 0; i < 8; ++i) {
          PORTOLAN_ASSIGN_OR_RETURN(const ReadOutcome outcome,
                                    reader->Next(plan.options.batch, &batches.emplace_back()));
          if (outcome == ReadOutcome::kEnd) return MakeError(ErrorCode::kInvalidValue, "data: fewer than 8 batches");
        }
      }
      PORTOLAN_ASSIGN_OR_RETURN(entry.price, PriceRecipe(*entry.job, entry.job->recipe, batches, calibration_));
      PORTOLAN_RETURN_IF_ERROR(entry.timed->Round(batches));
      entry.timed->ForgetRounds();
    }
    for (int round = 0; round < 5; ++round) {
      for (Entry& entry : entries) {
        entry.slow.push_back(probe_.Slowdown(calibration_));
        PORTOLAN_RETURN_IF_ERROR(entry.timed->Round(batches));
      }
    }
    std::vector<Point> points;
    for (Entry& entry : entries) {
      const ClassTimes slow = MedianOf(entry.slow);
      entry.price.Scale(slow);
      points.push_back({entry.price.Total(), entry.timed->StepSeconds(), entry.timed->Spread()});
      Print(base, entry.timed->network().plan().options.batch, entry.variant, entry.price, slow, *entry.timed);
    }
    Judge(points);
    return {};
  }

  void PrintSummary() const {
    std::printf("%d recipes: off by a factor of %.3f in the geometric mean; Kendall's tau %.3f over %d pairs\n", count_,
                std::exp(logarithms_ / std::max(count_, 1)), 2.0 * agree_ / std::max(pairs_, 1) - 1, pairs_);
  }

 private:
  struct Point {
    double predicted, measured, spread;
  };
  struct Entry {
    const char* variant = "";
    std::unique_ptr<Job> job;
    std::unique_ptr<TimedNetwork> timed;
    StepPrice price;
    std::vector<ClassTimes> slow;
  };

  void Print(const Job& job, int64_t batch, const char* variant, const StepPrice& price, const ClassTimes& slow,
             TimedNetwork& timed) const {
    std::printf("%-14s %6lld %-10s %7.3f ms %7.3f ms %+7.1f%% %7.1f%%  %.2f %.2f %.2f %.2f\n", job.model.id.c_str(),
                static_cast<long long>(batch), variant, price.Total() * 1e3, timed.StepSeconds() * 1e3,
                100 * (price.Total() / timed.StepSeconds() - 1), 100 * timed.Spread(), slow[0], slow[1], slow[2],
                slow[3]);
    std::fflush(stdout);
    if (!show_phases_) return;
    for (const auto& [phase, seconds] : price.Phases()) {
      for (const auto& [same, measured] : timed.Phases()) {
        if (same != phase) continue;
        std::printf("    %-22s %10.1f us %10.1f us %+7.1f%%\n", phase.c_str(), seconds * 1e6, measured * 1e6,
                    100 * (seconds / measured - 1));
      }
    }
    // Parameters name the layers; those without are joins and interactions.
    const NetworkPlan& plan = timed.network().plan();
    const std::vector<LayerTime> layers = timed.Layers();
    for (size_t l = 0; l < layers.size(); ++l) {
      const auto& parameters = plan.layers[l].layer->parameters;
      const LayerTime& priced = price.layers[l];
      std::printf("      %-20s forward %9.1f us %9.1f us %+7.1f%%   backward %9.1f us %9.1f us %+7.1f%%\n",
                  parameters.empty() ? "-" : parameters.front().name.c_str(), priced.forward_s * 1e6,
                  layers[l].forward_s * 1e6, 100 * (priced.forward_s / layers[l].forward_s - 1),
                  priced.backward_s * 1e6, layers[l].backward_s * 1e6,
                  100 * (priced.backward_s / layers[l].backward_s - 1));
    }
  }

  void Judge(const std::vector<Point>& points) {
    for (size_t a = 0; a < points.size(); ++a) {
      logarithms_ += std::fabs(std::log(points[a].predicted / points[a].measured));
      ++count_;
      for (size_t b = 0; b < a; ++b) {
        const double apart = std::fabs(std::log(points[a].measured / points[b].measured));
        if (apart <= std::max(points[a].spread, points[b].spread)) continue;
        ++pairs_;
        agree_ += (points[a].predicted < points[b].predicted) == (points[a].measured < points[b].measured) ? 1 : 0;
      }
    }
  }

  const Calibration& calibration_;
  const bool show_phases_;
  SpeedProbe probe_;
  double logarithms_ = 0;
  int count_ = 0, agree_ = 0, pairs_ = 0;
};

Status Run(const std::string& folder, bool show_phases, const std::vector<std::string>& jobs) {
  PORTOLAN_ASSIGN_OR_RETURN(const Calibration calibration, ReadCalibration(folder));
  Comparison comparison(calibration, show_phases);
  for (const std::string& path : jobs) {
    PORTOLAN_ASSIGN_OR_RETURN(const Job job, LoadJob(path, NoFile));
    PORTOLAN_RETURN_IF_ERROR(comparison.Add(job));
  }
  for (const Case& of : kCases) {
    if (!jobs.empty()) break;
    for (const int64_t batch : of.batches) {
      PORTOLAN_ASSIGN_OR_RETURN(const Job job, MakeJob(of, batch));
      PORTOLAN_RETURN_IF_ERROR(comparison.Add(job));
    }
  }
  comparison.PrintSummary();
  return {};
}

}  // namespace
}  // namespace portolan

int main(int argc, char** argv) {
  portolan::SettleThreads(argv, portolan::ThreadPlacing::kOneACore);
  if (argc < 2) {
    std::fprintf(stderr, "predict_steps CALIBRATION_FOLDER [--phases] [JOB.yaml...]\n");
    return 2;
  }
  const bool show_phases = argc > 2 && std::strcmp(argv[2], "--phases") == 0;
  const auto status = portolan::Run(argv[1], show_phases, {argv + (show_phases ? 3 : 2), argv + argc});
  if (!status) std::fprintf(stderr, "%s\n", portolan::FormatError(status.error()).c_str());
  return status ? 0 : 1;
}
