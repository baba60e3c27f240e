#include "engine/data/sample_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/data/random_order.h"

namespace portolan {
namespace {

// Sample i: label i % 2, dense i, feature a = {i}, feature b = i % 3 ids 100 i, 100 i + 1, ...
class CountingSource : public SampleSource {
 public:
  CountingSource(int64_t count, Bags bags) : SampleSource(PolicyBook()), count_(count), bags_(bags) {}
  Bags bags() const override { return bags_; }
  Status Read(int64_t count, SampleRows* rows) override {
    for (; count > 0 && next_ < count_; --count, ++next_) {
      if (next_ == fail_at) return MakeError(ErrorCode::kParse, "as asked");
      rows->Reserve(1);
      rows->labels[rows->size] = static_cast<float>(next_ % 2);
      rows->dense[rows->size] = static_cast<float>(next_);
      if (bags_ == Bags::kOneEach) {
        rows->ids[2 * rows->size] = next_;
        rows->ids[2 * rows->size + 1] = 100 * next_;
      } else {
        rows->ids.push_back(next_);
        rows->ends[2 * rows->size] = std::ssize(rows->ids);
        for (int64_t k = 0; k < next_ % 3; ++k) rows->ids.push_back(100 * next_ + k);
        rows->ends[2 * rows->size + 1] = std::ssize(rows->ids);
      }
      ++rows->size;
      policies_.CountSample();
    }
    return {};
  }
  SourcePosition Position() const override { return {0, next_}; }
  SourcePosition Start() const override { return {0, 0}; }
  Status Seek(SourcePosition position) override {
    if (position.part != 0 || position.offset > count_) return MakeError(ErrorCode::kInvalidValue, "outside");
    next_ = position.offset;
    return {};
  }
  int64_t fail_at = -1;

 private:
  int64_t count_;
  Bags bags_;
  int64_t next_ = 0;
};

BatchSchema Schema() {
  BatchSchema schema;
  schema.dense_width = 1;
  schema.features = {{"a", 1000}, {"b", 100000}};
  return schema;
}

SampleReader Make(int64_t count, Bags bags, SampleOrder order = {}) {
  return {std::make_unique<CountingSource>(count, bags), Schema(), order, "test"};
}

// Everything a reader has left, batch by batch of `size`.
std::vector<Batch> ReadAll(Reader* reader, int64_t size) {
  std::vector<Batch> batches;
  while (true) {
    Batch batch;
    const auto outcome = reader->Next(size, &batch);
    EXPECT_TRUE(outcome) << FormatError(outcome.error());
    if (!outcome || *outcome == ReadOutcome::kEnd) return batches;
    batches.push_back(batch);
  }
}

std::vector<float> Samples(const std::vector<Batch>& batches) {
  std::vector<float> samples;
  for (const Batch& batch : batches) samples.insert(samples.end(), batch.dense.begin(), batch.dense.end());
  return samples;
}

void ExpectEqual(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.offsets, b.offsets);
}

TEST(SampleReaderTest, LaysOutIdsFeatureByFeature) {
  SampleReader reader = Make(5, Bags::kVariable);
  const auto batches = ReadAll(&reader, 3);
  ASSERT_EQ(batches.size(), 2u);
  // Samples 0, 1, 2: a = {0}, {1}, {2}; b = {}, {100}, {200, 201}.
  EXPECT_EQ(batches[0].ids, (std::vector<int64_t>{0, 1, 2, 100, 200, 201}));
  EXPECT_EQ(batches[0].offsets, (std::vector<int64_t>{0, 1, 2, 3, 3, 4, 6}));
  EXPECT_EQ(batches[0].labels, (std::vector<float>{0, 1, 0}));
  // Samples 3, 4: b = {}, {400}.
  EXPECT_EQ(batches[1].ids, (std::vector<int64_t>{3, 4, 400}));
  EXPECT_EQ(batches[1].offsets, (std::vector<int64_t>{0, 1, 2, 2, 3}));
}

TEST(SampleReaderTest, OneIdEachIsTheSameLayoutForAnySize) {
  for (const int64_t size : {1, 63, 64, 65, 200, 1000, 200000}) {
    SampleReader reader = Make(777, Bags::kOneEach);
    int64_t next = 0;
    for (const Batch& batch : ReadAll(&reader, size)) {
      ASSERT_EQ(batch.size, std::min(size, 777 - next));
      ASSERT_EQ(std::ssize(batch.ids), 2 * batch.size);
      ASSERT_EQ(std::ssize(batch.offsets), 2 * batch.size + 1);
      for (int64_t i = 0; i < batch.size; ++i, ++next) {
        ASSERT_EQ(batch.ids[i], next);
        ASSERT_EQ(batch.ids[batch.size + i], 100 * next);
        ASSERT_EQ(batch.offsets[batch.size + i], batch.size + i);
        ASSERT_EQ(batch.dense[i], static_cast<float>(next));
      }
    }
    EXPECT_EQ(next, 777);
  }
}

TEST(SampleReaderTest, ABatchLargerThanItsFirstMemoryKeepsItsColumns) {
  // 300,000 samples: the columns of the batch are moved apart twice while it fills.
  SampleReader reader = Make(300000, Bags::kOneEach);
  const auto batches = ReadAll(&reader, 1 << 20);
  ASSERT_EQ(batches.size(), 1u);
  for (int64_t i = 0; i < 300000; ++i) {
    ASSERT_EQ(batches[0].ids[i], i);
    ASSERT_EQ(batches[0].ids[300000 + i], 100 * i);
  }
}

TEST(SampleReaderTest, AReusedBatchHoldsNothingOld) {
  SampleReader reader = Make(10, Bags::kOneEach);
  Batch batch;
  batch.id_weights = {1, 2};
  batch.sample_weights = {3};
  ASSERT_TRUE(reader.Next(8, &batch));
  EXPECT_TRUE(batch.id_weights.empty() && batch.sample_weights.empty());
  ASSERT_TRUE(reader.Next(8, &batch));
  EXPECT_EQ(batch.labels.size(), 2u);
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{8, 9, 800, 900}));
  EXPECT_EQ(*reader.Next(8, &batch), ReadOutcome::kEnd);
  EXPECT_TRUE(batch.labels.empty() && batch.dense.empty() && batch.ids.empty());
}

TEST(SampleReaderTest, AShuffleWindowHoldsItsSamplesAndMixesThem) {
  SampleReader reader = Make(100, Bags::kVariable, {32, 7, 1});
  const std::vector<float> samples = Samples(ReadAll(&reader, 9));
  ASSERT_EQ(samples.size(), 100u);
  int at_home = 0;
  for (int64_t begin = 0; begin < 100; begin += 32) {
    const int64_t end = std::min<int64_t>(100, begin + 32);
    const std::set<float> window(samples.begin() + begin, samples.begin() + end);
    EXPECT_EQ(std::ssize(window), end - begin);
    EXPECT_EQ(*window.begin(), static_cast<float>(begin));
    EXPECT_EQ(*window.rbegin(), static_cast<float>(end - 1));
    for (int64_t i = begin; i < end; ++i) at_home += samples[i] == static_cast<float>(i);
  }
  EXPECT_LT(at_home, 15);  // one in a window on average: more than 15 of four windows has odds below 1e-4
}

TEST(SampleReaderTest, OrdersDifferBySeedWindowAndEpoch) {
  const auto order = [](uint64_t seed) {
    SampleReader reader = Make(64, Bags::kOneEach, {32, seed, 2});
    return Samples(ReadAll(&reader, 64));
  };
  const std::vector<float> one = order(1);
  EXPECT_EQ(one, order(1));
  EXPECT_NE(one, order(2));
  ASSERT_EQ(one.size(), 128u);
  const auto window = [&](int64_t i) {
    std::vector<float> samples(one.begin() + 32 * i, one.begin() + 32 * i + 32);
    const float least = *std::min_element(samples.begin(), samples.end());
    for (float& sample : samples) sample -= least;
    return samples;
  };
  EXPECT_NE(window(0), window(1));
  EXPECT_NE(window(0), window(2));  // the same samples in the second epoch
}

TEST(SampleReaderTest, ResumesBitEqualFromEveryPosition) {
  for (const Bags bags : {Bags::kOneEach, Bags::kVariable}) {
    for (const int64_t window : {0, 1, 7, 32, 1000}) {
      const SampleOrder order{window, 3, 3};
      SampleReader whole = Make(50, bags, order);
      std::vector<std::string> positions{whole.Position()};
      std::vector<Batch> batches;
      for (Batch batch; *whole.Next(8, &batch) == ReadOutcome::kBatch;) {
        batches.push_back(batch);
        positions.push_back(whole.Position());
      }
      ASSERT_EQ(batches.size(), 19u);  // 150 samples
      for (size_t at = 0; at < positions.size(); ++at) {
        SampleReader resumed = Make(50, bags, order);
        const Status status = resumed.Restore(positions[at]);
        ASSERT_TRUE(status) << FormatError(status.error());
        EXPECT_EQ(resumed.Position(), positions[at]);
        const auto rest = ReadAll(&resumed, 8);
        ASSERT_EQ(rest.size(), batches.size() - at) << positions[at];
        for (size_t i = 0; i < rest.size(); ++i) ExpectEqual(rest[i], batches[at + i]);
      }
    }
  }
}

TEST(SampleReaderTest, PositionsOfOtherDataAreRefused) {
  SampleReader reader = Make(50, Bags::kOneEach, {8, 3, 1});
  Batch batch;
  ASSERT_TRUE(reader.Next(3, &batch));
  const std::string position = reader.Position();
  SampleReader other_seed = Make(50, Bags::kOneEach, {8, 4, 1});
  ASSERT_FALSE(other_seed.Restore(position));
  EXPECT_NE(other_seed.Restore(position).error().message.find("belongs to other data"), std::string::npos);
  EXPECT_TRUE(Make(50, Bags::kOneEach, {8, 3, 9}).Restore(position)) << "more epochs are the same data";
  for (const std::string& bad : std::vector<std::string>{
           "", "data", position + " x", position.substr(5), std::string(1000, 'x'),
           position.substr(0, position.find(" offset")) + " offset=99",
           position.substr(0, position.find(" part")) + " part=1 offset=0",
           position.substr(0, position.find(" used")) + " used=9 part=0 offset=0",
           position.substr(0, position.find(" used")) + " used=3 part=0 offset=48",
           position.substr(0, position.find(" epoch")) + " epoch=-1 window=0 used=0 part=0 offset=0",
           position.substr(0, position.find(" epoch")) + " epoch=1 window=0 used=0 part=0 offset=0",
           position.substr(0, position.find(" epoch")) +
               " epoch=99999999999999999999 window=0 used=0 part=0 offset=0"}) {
    SampleReader fresh = Make(50, Bags::kOneEach, {8, 3, 1});
    EXPECT_FALSE(fresh.Restore(bad)) << bad;
  }
}

TEST(SampleReaderTest, NoSamplesAreTheEndInEveryEpoch) {
  SampleReader reader = Make(0, Bags::kOneEach, {0, 0, 1000000000});
  EXPECT_TRUE(ReadAll(&reader, 5).empty());
  SampleReader shuffled = Make(0, Bags::kOneEach, {5, 0, 1000000000});
  EXPECT_TRUE(ReadAll(&shuffled, 5).empty());
}

TEST(SampleReaderTest, SizesOutsideTheBoundsAreRefused) {
  SampleReader reader = Make(5, Bags::kOneEach);
  Batch batch;
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) EXPECT_FALSE(reader.Next(size, &batch));
  EXPECT_TRUE(reader.Next(5, &batch));
  EXPECT_EQ(batch.size, 5);
}

TEST(RandomOrderTest, IsAPermutationAndUniform) {
  std::vector<int64_t> first(10, 0);
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    std::vector<int64_t> order = RandomOrder(10, seed);
    ++first[order[0]];
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 10; ++i) ASSERT_EQ(order[i], i);
  }
  // 1000 expected, standard deviation 30: five of them.
  for (const int64_t count : first) EXPECT_NEAR(static_cast<double>(count), 1000.0, 150.0);
  EXPECT_TRUE(RandomOrder(0, 1).empty());
}

}  // namespace
}  // namespace portolan
