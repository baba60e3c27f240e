#include "engine/data/prefetch_reader.h"

#include <gtest/gtest.h>

#include <chrono>

namespace portolan {
namespace {

// Batches of consecutive labels; fails at sample `fail_at`, ends at `count`.
class Consecutive : public Reader {
 public:
  Consecutive(int64_t count, int64_t fail_at) : count_(count), fail_at_(fail_at) {}
  Result<ReadOutcome> Next(int64_t size, Batch* batch) override {
    batch->labels.clear();
    for (; batch->labels.size() < static_cast<size_t>(size) && next_ < count_; ++next_) {
      if (next_ == fail_at_) {
        batch->size = 0;
        return MakeError(ErrorCode::kParse, "as asked");
      }
      batch->labels.push_back(static_cast<float>(next_));
      ++counts_.samples;
    }
    batch->size = std::ssize(batch->labels);
    return batch->size > 0 ? ReadOutcome::kBatch : ReadOutcome::kEnd;
  }
  std::string Position() const override { return std::to_string(next_); }
  Status Restore(const std::string& position) override {
    if (position == "nowhere") return MakeError(ErrorCode::kInvalidValue, "nowhere");
    next_ = std::stoll(position);
    counts_ = {};
    return {};
  }
  ReadCounts Counts() const override { return counts_; }

 private:
  int64_t count_, fail_at_, next_ = 0;
  ReadCounts counts_;
};

PrefetchReader Make(int64_t count, int64_t fail_at = -1, int64_t ahead = 3) {
  return {std::make_unique<Consecutive>(count, fail_at), ahead};
}

TEST(PrefetchReaderTest, GivesTheSameBatchesInOrder) {
  for (const int64_t ahead : {1, 2, 64}) {
    PrefetchReader reader = Make(1000, -1, ahead);
    EXPECT_EQ(reader.Position(), "0");
    Batch batch;
    int64_t next = 0;
    while (*reader.Next(7, &batch) == ReadOutcome::kBatch) {
      for (const float label : batch.labels) EXPECT_EQ(label, static_cast<float>(next++));
      EXPECT_EQ(reader.Position(), std::to_string(next)) << "what the caller has seen, not what was read";
      EXPECT_EQ(reader.Counts().samples, next);
    }
    EXPECT_EQ(next, 1000);
    EXPECT_EQ(*reader.Next(7, &batch), ReadOutcome::kEnd) << "the end stays";
    EXPECT_EQ(batch.size, 0);
  }
}

TEST(PrefetchReaderTest, AnErrorComesAfterTheBatchesBeforeIt) {
  PrefetchReader reader = Make(1000, 25);
  Batch batch;
  ASSERT_TRUE(reader.Next(10, &batch));
  ASSERT_TRUE(reader.Next(10, &batch));
  EXPECT_EQ(batch.labels[0], 10);
  for (int i = 0; i < 3; ++i) {
    const auto outcome = reader.Next(10, &batch);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().message, "as asked");
    EXPECT_EQ(batch.size, 0);
    EXPECT_EQ(reader.Position(), "20");
  }
  ASSERT_TRUE(reader.Restore("5"));
  ASSERT_TRUE(reader.Next(10, &batch));
  EXPECT_EQ(batch.labels[0], 5);
}

TEST(PrefetchReaderTest, RestoreAtAnyMomentAndShutdownAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    PrefetchReader reader = Make(1000000, -1, 1 + round % 4);
    Batch batch;
    for (int i = 0; i < round % 5; ++i) ASSERT_TRUE(reader.Next(3, &batch));
    if (round % 2 == 0) {
      ASSERT_TRUE(reader.Restore("500"));
      EXPECT_EQ(reader.Position(), "500");
      EXPECT_EQ(reader.Counts().samples, 0);
      ASSERT_TRUE(reader.Next(3, &batch));
      EXPECT_EQ(batch.labels, (std::vector<float>{500, 501, 502}));
      EXPECT_FALSE(reader.Restore("nowhere"));
    }
  }
}

TEST(PrefetchReaderTest, AnotherSizeLosesNothing) {
  PrefetchReader reader = Make(100);
  Batch batch;
  std::vector<float> labels;
  int64_t size = 1;
  while (*reader.Next(size, &batch) == ReadOutcome::kBatch) {
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    EXPECT_EQ(reader.Counts().samples, std::ssize(labels));
    size = 1 + size * 3 % 7;
  }
  ASSERT_EQ(labels.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(labels[i], static_cast<float>(i));
}

TEST(PrefetchReaderTest, ReadsAheadOfTheCaller) {
  // 5 ms a batch on either side, asleep: read in turn they take 10 ms each, overlapped 5.
  class Slow : public Consecutive {
   public:
    Slow() : Consecutive(40, -1) {}
    Result<ReadOutcome> Next(int64_t size, Batch* batch) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return Consecutive::Next(size, batch);
    }
  };
  const auto seconds = [](Reader* reader) {
    const auto start = std::chrono::steady_clock::now();
    Batch batch;
    while (*reader->Next(1, &batch) == ReadOutcome::kBatch) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Slow in_turn;
  PrefetchReader ahead(std::make_unique<Slow>(), 2);
  const double turn = seconds(&in_turn);
  EXPECT_LT(seconds(&ahead), 0.9 * turn);
}

}  // namespace
}  // namespace portolan
