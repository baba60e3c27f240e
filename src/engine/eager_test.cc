#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/trainer.h"

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
    - {name: bottom, type: mlp, input: dense, widths: [16, 8], activation: sigmoid}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings], pad_multiple: 8}
    - {name: top, type: mlp, input: dot, widths: [16, 1], last_activation: none}
)";
const char kCross[] = R"(
    - {name: bottom, type: mlp, input: dense, widths: [8, 8], activation: gelu, last_activation: silu}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 3, rank: 3}
    - {name: full, type: low_rank_cross, input: cross, layers: 1}
    - {name: top, type: mlp, input: full, widths: [8, 1], last_activation: none}
)";

std::vector<double> Losses(const std::string& blocks, const std::string& embedding, const std::string& execution,
                           const std::string& rest = "") {
  const std::string text =
      std::string(kModel) + blocks +
      "recipe: {recipe: r, local_batch: 48, precision: {gemm: fp32, activation: fp32}, embedding: {" + embedding +
      "}, execution: {" + execution +
      "}}\ndata: {type: synthetic}\nsteps: 12\neval: {samples: 0}\nlearning_rate: 0.05\n" + rest;
  const auto find = [](const std::string&, const std::string&) -> Result<std::string> {
    return MakeError(ErrorCode::kNotFound, "no files here");
  };
  const auto job = ReadJob(*YamlValue::Parse(text, "job.yaml"), find);
  EXPECT_TRUE(job) << (job ? "" : FormatError(job.error()));
  if (!job) return {};
  const auto summary = Train(*job, [](const StepReport&) {});
  EXPECT_TRUE(summary) << (summary ? "" : FormatError(summary.error()));
  return summary ? summary->losses : std::vector<double>{};
}

void ExpectClose(const std::vector<double>& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5 * want[i]) << what << " step " << i;
  EXPECT_NE(want.front(), want.back());
}

// The framework's way of every optimizer and block is the same training: losses agree to rounding, step by step.
TEST(Eager, TrainsAsTheFusedEngineDoes) {
  const std::pair<const char*, const char*> optimizers[] = {{"sgd", "sgd"},
                                                            {"adagrad", "adagrad"},
                                                            {"rowwise_adagrad", "momentum"},
                                                            {"adam", "adam"},
                                                            {"rowwise_adam", "adam"}};
  for (const char* blocks : {kDot, kCross}) {
    for (const auto& [row, dense] : optimizers) {
      const std::string rows = std::string("optimizer: ") + row, whole = std::string("dense_optimizer: ") + dense;
      const std::vector<double> fused = Losses(blocks, rows, whole);
      ExpectClose(Losses(blocks, rows + ", kernels: per_table, update: separate", whole + ", fusion: eager"), fused,
                  rows);
    }
  }
}

// Each switch alone, with clipping and accumulation, which scale the gradients.
TEST(Eager, SwitchesAreIndependent) {
  const std::string rows = "optimizer: adagrad", dense = "dense_optimizer: adagrad, accumulation_steps: 2",
                    clip = "clip_norm: 0.05\n";
  const std::vector<double> fused = Losses(kCross, rows, dense, clip);
  ExpectClose(Losses(kCross, rows + ", kernels: per_table", dense, clip), fused, "per_table");
  ExpectClose(Losses(kCross, rows + ", update: separate", dense, clip), fused, "separate");
  ExpectClose(Losses(kCross, rows, dense + ", fusion: eager", clip), fused, "eager");
  ExpectClose(Losses(kCross, rows + ", update: separate, kernels: per_table", dense + ", fusion: eager", clip), fused,
              "all");
}

}  // namespace
}  // namespace portolan
