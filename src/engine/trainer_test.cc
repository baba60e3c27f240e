#include "engine/trainer.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/checkpoint.h"
#include "engine/network.h"

namespace portolan {
namespace {

const char kModel[] = R"(
model:
  model: tiny
  dense_features: 5
  tables:
    - {name: a, rows: 200, dim: 8, lookups: 2}
    - {name: b, rows: 30, dim: 8, lookups: 1, zipf_exponent: 1.1}
  features: [{name: again, table: a, lookups: 1}]
  blocks:
)";
const char kDot[] = R"(
    - {name: bottom, type: mlp, input: dense, widths: [16, 8]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings], pad_multiple: 8}
    - {name: top, type: mlp, input: dot, widths: [16, 1], last_activation: none}
)";
// Every block that the engine has, a value with three consumers, and the smooth activations.
const char kCross[] = R"(
    - {name: bottom, type: mlp, input: dense, widths: [8, 8], activation: gelu, last_activation: silu, layer_norm: true}
    - {name: twice, type: add, inputs: [bottom, bottom]}
    - {name: joined, type: concat, inputs: [twice, embeddings, bottom]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 2, rank: 3}
    - {name: full, type: low_rank_cross, input: cross, layers: 1}
    - {name: norm, type: norm, input: full}
    - {name: top, type: mlp, input: norm, widths: [8, 1], activation: sigmoid, last_activation: none}
)";

Job Read(const std::string& blocks, const std::string& rest, const std::string& recipe = "") {
  const std::string text = std::string(kModel) + blocks +
                           "recipe: {recipe: r, local_batch: 48, precision: {gemm: fp32, activation: fp32}" + recipe +
                           "}\ndata: {type: synthetic}\n" + rest;
  const auto find = [](const std::string&, const std::string&) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, "no files here");
  };
  auto job = ReadJob(*YamlValue::Parse(text, "job.yaml"), find);
  EXPECT_TRUE(job) << (job ? "" : FormatError(job.error()));
  return *job;
}

Result<TrainSummary> Quiet(const Job& job) {
  return Train(job, [](const StepReport&) {});
}

std::vector<double> Losses(const Job& job) {
  auto summary = Quiet(job);
  EXPECT_TRUE(summary) << (summary ? "" : FormatError(summary.error()));
  return summary ? summary->losses : std::vector<double>{};
}

std::string Bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The gradient of the loss by the difference of two losses against what one SGD step of rate 1 subtracts, for every
// dense parameter tensor and a looked-up row: forward and backward of every block agree.
TEST(Network, GradientsAreDifferenceQuotients) {
  for (const char* blocks : {kDot, kCross}) {
    Job job = Read(blocks, "steps: 1\n", ", embedding: {optimizer: sgd}, execution: {dense_optimizer: sgd}");
    std::vector<std::string> notes;
    const NetworkOptions options = *OptionsFromRecipe(job.model, job.recipe, &notes);
    Network network(*PlanNetwork(job.model, options), 3), moved(*PlanNetwork(job.model, options), 3);
    auto reader = *MakeReader(job.data, network.plan().Schema(job.model), DataSplit::kTrain, 0);
    Batch batch;
    ASSERT_TRUE(reader->Next(48, &batch));
    std::vector<float> logits(48);
    // Rows start near zero: spread them, so that their gradients matter.
    const auto states = network.States(), moved_states = moved.States();
    for (size_t s = 0; s < states.size(); ++s) {
      if (states[s].name.compare(0, 5, "table") != 0) continue;
      auto* values = static_cast<float*>(states[s].data);
      for (int64_t i = 0; i < states[s].bytes / 4; ++i) values[i] *= 4;
      std::memcpy(moved_states[s].data, states[s].data, static_cast<size_t>(states[s].bytes));
    }
    UpdateSettings settings;
    settings.dense_rate = settings.row_rate = 1;
    network.TrainStep(batch, settings, logits.data(), {});
    for (size_t s = 0; s < states.size(); ++s) {
      auto* after = static_cast<float*>(states[s].data);
      auto* before = static_cast<float*>(moved_states[s].data);
      const int64_t count = states[s].bytes / 4;
      double largest = 0;
      int64_t at = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (std::abs(before[i] - after[i]) > largest) {
          largest = std::abs(before[i] - after[i]);
          at = i;
        }
      }
      ASSERT_GT(largest, 0) << states[s].name;
      const double gradient = static_cast<double>(before[at]) - after[at];
      const float kept = before[at], h = 3e-3f;  // small: activations have kinks
      before[at] = kept + h;
      const double high = moved.Evaluate(batch, logits.data());
      before[at] = kept - h;
      const double low = moved.Evaluate(batch, logits.data());
      before[at] = kept;
      EXPECT_NEAR(gradient, (high - low) / (2 * h), 0.03 * std::abs(gradient) + 1e-4)
          << states[s].name << " " << blocks;
    }
  }
}

TEST(Trainer, Learns) {
  Job job = Read(kDot, "steps: 400\nlearning_rate: {rate: 0.01, embedding: 0.1}\neval: {samples: 4000}\n");
  const auto summary = Quiet(job);
  ASSERT_TRUE(summary);
  EXPECT_GT(summary->eval_auc, 0.7);
  EXPECT_LT(summary->eval_normalized_entropy, 0.95);
  EXPECT_EQ(summary->samples, 400 * 48);
}

TEST(Trainer, SameBitsForAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const char* rows : {"fp32", "bf16", "int8"}) {
    Job job = Read(kCross, "steps: 20\nlearning_rate: 0.02\nclip_norm: 0.5\neval: {samples: 0}\n");
    job.recipe.embedding_row = *ParseDType(rows);
    std::vector<std::vector<double>> losses;
    for (const int count : {1, 2, 3}) {
      omp_set_num_threads(count);
      losses.push_back(Losses(job));
    }
    EXPECT_EQ(losses[0], losses[1]) << rows;
    EXPECT_EQ(losses[0], losses[2]) << rows;
  }
  omp_set_num_threads(threads);
}

// Micro-batches see the same samples: only the order of sums differs.
TEST(Trainer, AccumulationIsTheSameStep) {
  Job whole = Read(kCross, "steps: 10\neval: {samples: 0}\n");
  Job parts = Read(kCross, "steps: 10\neval: {samples: 0}\n", ", execution: {accumulation_steps: 5}");
  const auto a = Losses(whole), b = Losses(parts);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-4) << i;
}

TEST(Trainer, ResumesWithTheSameBits) {
  const std::string folder = testing::TempDir() + "portolan_resume_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* rows : {"fp32", "fp16"}) {
    const std::string at = folder + "/" + rows;
    Job job = Read(kCross, "steps: 30\neval: {samples: 0}\nlearning_rate: {rate: 0.02, warmup_steps: 25}\n");
    job.recipe.embedding_row = *ParseDType(rows);
    job.export_file = at + "_whole";
    const auto whole = Losses(job);
    job.checkpoint_folder = at;
    job.checkpoint_every = 4;
    job.checkpoint_keep = 2;
    job.steps = 13;
    job.export_file.clear();
    Losses(job);
    job.steps = 30;
    job.export_file = at + "_resumed";
    const auto rest = Losses(job);
    ASSERT_EQ(rest.size(), 17u);
    EXPECT_EQ(std::vector<double>(whole.begin() + 13, whole.end()), rest);
    EXPECT_EQ(Bytes(at + "_whole"), Bytes(at + "_resumed"));
    int64_t kept = 0;
    for (const auto& entry : std::filesystem::directory_iterator(at)) kept += entry.is_directory() ? 1 : 0;
    EXPECT_EQ(kept, 2);
    job.seed = 9;
    EXPECT_FALSE(Quiet(job)) << "a checkpoint of another seed must be refused";
    // A damaged newest checkpoint is an error that names the file, not a silent start from an older state.
    std::ofstream(at + "/step_000000030/state.safetensors") << "x";
    job.seed = 1;
    const auto damaged = Quiet(job);
    ASSERT_FALSE(damaged);
    EXPECT_NE(damaged.error().file.find("step_000000030"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST(Trainer, StopsOnALossThatIsNotFinite) {
  Job job = Read(kDot, "steps: 200\nlearning_rate: 1e6\neval: {samples: 0}\n",
                 ", embedding: {optimizer: sgd}, execution: {dense_optimizer: sgd}");
  const auto summary = Quiet(job);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("lower learning_rate"), std::string::npos) << summary.error().message;
}

TEST(Trainer, SaysWhatWouldFitBeforeItAllocates) {
  Job job = Read(kDot, "steps: 1\n");
  job.model.tables[0].rows = 1e12;
  const auto summary = Quiet(job);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("embedding rows"), std::string::npos) << summary.error().message;
}

TEST(Trainer, ReportsAFolderThatCannotBeWritten) {
  Job job = Read(kDot, "steps: 2\neval: {samples: 0}\n");
  job.checkpoint_folder = "/dev/null/checkpoints";
  const auto summary = Quiet(job);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::kIo);
}

TEST(Network, RefusesBlocksByName) {
  Job job = Read(kDot, "steps: 1\n");
  job.model.blocks[1].body = FactorizationBlock{};
  const auto plan = PlanNetwork(job.model, {});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("'factorization'"), std::string::npos) << plan.error().message;
}

TEST(Network, RefusesFormatsByName) {
  Job job = Read(kDot, "steps: 1\n");
  std::vector<std::string> notes;
  job.recipe.gemm = DType::kFp8E4m3;
  EXPECT_FALSE(OptionsFromRecipe(job.model, job.recipe, &notes));
  job.recipe.gemm = DType::kBf16;
  job.recipe.embedding_row = DType::kFp8E5m2;
  EXPECT_FALSE(OptionsFromRecipe(job.model, job.recipe, &notes));
}

// Laws of the arena: what is alive together does not overlap, and the whole is no smaller than the largest such set.
TEST(Arena, NothingAliveOverlaps) {
  std::vector<ArenaBuffer> buffers;
  std::vector<int64_t> sizes;
  for (int i = 0; i < 60; ++i) {
    const int first = i * 7 % 40;
    buffers.push_back({1, ArenaBuffer::Extent::kMicroBatch, first, first + i * 5 % 11, 0});
    sizes.push_back(1 + i * 13 % 100);
  }
  const int64_t total = LayOutArena(sizes, &buffers);
  int64_t peak = 0, sum = 0;
  for (int time = 0; time < 60; ++time) {
    int64_t alive = 0;
    for (size_t b = 0; b < buffers.size(); ++b)
      alive += buffers[b].first <= time && time <= buffers[b].last ? sizes[b] : 0;
    peak = std::max(peak, alive);
  }
  for (size_t a = 0; a < buffers.size(); ++a) {
    sum += sizes[a];
    EXPECT_LE(buffers[a].offset + sizes[a], total);
    for (size_t b = a + 1; b < buffers.size(); ++b) {
      if (buffers[a].first > buffers[b].last || buffers[b].first > buffers[a].last) continue;
      EXPECT_TRUE(buffers[a].offset + sizes[a] <= buffers[b].offset ||
                  buffers[b].offset + sizes[b] <= buffers[a].offset);
    }
  }
  EXPECT_GE(total, peak);
  EXPECT_LT(total, 3 * peak);
  EXPECT_LT(total, sum);
}

TEST(Job, RefusesWhatIsWrong) {
  const auto find = [](const std::string&, const std::string& name) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, "no file " + name);
  };
  const std::string model = std::string(kModel) + kDot;
  for (const std::string& text :
       {std::string("[]"), std::string("steps: 1"), model + "steps: 1\n", model + "data: {type: synthetic}\n",
        model + "data: {type: synthetic}\nsteps: -1\n", model + "data: {type: synthetic}\nsteps: 1\nstep: 2\n",
        model + "data: {type: synthetic}\nsteps: 1\noptimizer: {beta1: 1}\n",
        model + "data: {type: synthetic}\nsteps: 1\ncheckpoint: {every: 2}\n",
        std::string("model: nowhere\ndata: {type: synthetic}\nsteps: 1\n")}) {
    EXPECT_FALSE(ReadJob(*YamlValue::Parse(text, "job.yaml"), find)) << text;
  }
  Job job = Read(kDot, "steps: 1\n");
  job.data = *YamlValue::Parse("{type: sythetic}", "job.yaml");
  EXPECT_FALSE(Quiet(job));
  job.data = *YamlValue::Parse("{type: synthetic, reuse: never}", "job.yaml");
  EXPECT_FALSE(Quiet(job));
}

TEST(Trainer, LogsAsMlperfDoes) {
  const std::string path = testing::TempDir() + "trainer_test.mllog";
  std::filesystem::remove(path);
  ASSERT_TRUE(Quiet(Read(kDot, "steps: 4\nreport_every: 2\neval: {every: 4, samples: 96}\nmlperf_log: " + path)));
  std::ifstream file(path);
  std::string keys;
  for (std::string line; std::getline(file, line);) {
    const size_t key = line.find("\"key\":\"") + 7;
    keys += line.substr(key, line.find('"', key) - key) + " ";
  }
  EXPECT_EQ(keys,
            "submission_benchmark seed global_batch_size gradient_accumulation_steps eval_samples "
            "opt_base_learning_rate opt_learning_rate_warmup_steps run_start train_loss train_loss eval_start "
            "eval_accuracy eval_stop run_stop ");
  EXPECT_NE(Bytes(path).find("\"key\":\"run_stop\",\"value\":null,\"metadata\":{\"status\":\"success\"}"),
            std::string::npos);
}

}  // namespace
}  // namespace portolan
