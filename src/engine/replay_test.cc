#include "engine/data/replay.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/safetensors.h"

namespace portolan {
namespace {

const std::string kPath = testing::TempDir() + "portolan_replay_test.safetensors";

Result<std::unique_ptr<Reader>> Open(std::vector<int64_t> ids, std::vector<int64_t> offsets,
                                     std::vector<float> labels) {
  std::vector<float> dense(labels.size(), 0.5f);
  const auto n = static_cast<int64_t>(labels.size());
  const Status written = WriteSafetensors(
      kPath,
      {{"batch.0.dense", "F32", {n, 1}, dense.data(), 4 * n},
       {"batch.0.labels", "F32", {n}, labels.data(), 4 * n},
       {"batch.0.ids", "I64", {static_cast<int64_t>(ids.size())}, ids.data(), static_cast<int64_t>(8 * ids.size())},
       {"batch.0.offsets",
        "I64",
        {static_cast<int64_t>(offsets.size())},
        offsets.data(),
        static_cast<int64_t>(8 * offsets.size())}},
      {});
  EXPECT_TRUE(written);
  auto reader = OpenReplay(*YamlValue::Parse("{type: batches, file: " + kPath + "}", "job.yaml"),
                           {1, {{"a", 10, 1, 0}, {"b", 5, 1, 0}}});
  std::filesystem::remove(kPath);
  return reader;
}

TEST(Replay, RepeatsAndCuts) {
  auto reader = Open({9, 8, 4, 3}, {0, 1, 2, 2, 4}, {0, 1});
  ASSERT_TRUE(reader);
  Batch batch;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*reader)->Next(5, &batch));
    EXPECT_EQ(batch.ids, (std::vector<int64_t>{9, 8, 4, 3}));
  }
  ASSERT_TRUE((*reader)->Next(1, &batch));  // the first sample: 9 of feature a, nothing of b
  EXPECT_EQ(batch.size, 1);
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{9}));
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ((*reader)->Position(), "3");
}

TEST(Replay, RefusesWhatIsOutOfBounds) {
  EXPECT_FALSE(Open({10, 8, 4, 3}, {0, 1, 2, 2, 4}, {0, 1}));
  EXPECT_FALSE(Open({9, -1, 4, 3}, {0, 1, 2, 2, 4}, {0, 1}));
  EXPECT_FALSE(Open({9, 8, 5, 3}, {0, 1, 2, 2, 4}, {0, 1}));
  EXPECT_FALSE(Open({9, 8, 4, 3}, {0, 2, 1, 2, 4}, {0, 1}));
  EXPECT_FALSE(Open({9, 8, 4, 3}, {0, 1, 2, 2, 5}, {0, 1}));
  EXPECT_FALSE(Open({9, 8, 4, 3}, {0, 1, 2, 4}, {0, 1}));
  EXPECT_FALSE(Open({9, 8, 4, 3}, {0, 1, 2, 2, 4}, {0, 2}));
}

}  // namespace
}  // namespace portolan
