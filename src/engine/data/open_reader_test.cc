#include "engine/data/open_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/binary_test_files.h"
#include "engine/data/data_test_files.h"

namespace portolan {
namespace {

BatchSchema Criteo() {
  BatchSchema schema;
  schema.dense_width = 13;
  for (int i = 1; i <= 26; ++i) schema.features.push_back({fmt::format("C{}", i), 100});
  return schema;
}

BatchSchema Small() {
  BatchSchema schema;
  schema.dense_width = 1;
  schema.features = {{"a", 100, 2}, {"b", 100, 1}};
  return schema;
}

// The section stands in a file of the folder of the data, so that names are relative to it.
Result<std::unique_ptr<Reader>> Open(const std::string& yaml, const BatchSchema& schema,
                                     DataSplit split = DataSplit::kTrain) {
  const auto value = YamlValue::Parse(yaml, ::testing::TempDir() + "job.yaml");
  EXPECT_TRUE(value) << FormatError(value.error());
  const auto map = value->Map();
  EXPECT_TRUE(map) << FormatError(map.error());
  return OpenReader(*map, schema, split);
}

std::vector<float> Labels(const std::string& yaml, const BatchSchema& schema, DataSplit split = DataSplit::kTrain) {
  auto reader = Open(yaml, schema, split);
  EXPECT_TRUE(reader) << FormatError(reader.error());
  std::vector<float> labels;
  if (!reader) return labels;
  while (true) {
    Batch batch;
    const auto outcome = (*reader)->Next(3, &batch);
    EXPECT_TRUE(outcome) << FormatError(outcome.error());
    if (!outcome || *outcome == ReadOutcome::kEnd) return labels;
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
}

std::string ErrorOf(const std::string& yaml, const BatchSchema& schema, DataSplit split = DataSplit::kTrain) {
  const auto reader = Open(yaml, schema, split);
  return reader ? "no error" : FormatError(reader.error());
}

std::string CriteoText(const std::string& labels) {
  std::string text;
  for (const char label : labels) {
    text += label;
    for (int i = 0; i < 13; ++i) text += "\t1";
    for (int i = 0; i < 26; ++i) text += "\t0000000a";
    text += '\n';
  }
  return text;
}

TEST(OpenReaderTest, CriteoWithDaysHeldOut) {
  DataTestFile("day_0", CriteoText("1100"));
  DataTestFile("day_1", CriteoText("10"));
  DataTestFile("day_2", CriteoText("111"));
  const std::string yaml = "format: criteo_tsv\nfiles: [day_0, day_1]\neval_files: [day_2]\n";
  EXPECT_EQ(Labels(yaml, Criteo()), (std::vector<float>{1, 1, 0, 0, 1, 0}));
  EXPECT_EQ(Labels(yaml, Criteo(), DataSplit::kEval), (std::vector<float>{1, 1, 1}));
  const std::string fraction = "format: criteo_tsv\nfiles: [day_0, day_1]\neval_fraction: 0.5\nprefetch: 0\n";
  EXPECT_EQ(Labels(fraction, Criteo()), (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(Labels(fraction, Criteo(), DataSplit::kEval), (std::vector<float>{0, 1, 0}));
}

TEST(OpenReaderTest, EveryOtherFormat) {
  DataTestFile("t.csv", "y,x,a,b\n1,2,3|4,5\n0,1,,6\n");
  const std::string columns =
      "columns:\n  - {name: y, kind: label}\n  - {name: x, kind: dense}\n"
      "  - {name: a, kind: multi_hot}\n  - {name: b, kind: categorical}\n";
  EXPECT_EQ(Labels("format: csv\nfiles: [t.csv]\n" + columns, Small()), (std::vector<float>{1, 0}));
  DataTestFile("columns.yaml", columns);
  EXPECT_EQ(Labels("format: csv\nfiles: [t.csv]\ndescription: columns.yaml\n", Small()), (std::vector<float>{1, 0}));

  DataTestFile("d.bin", BytesOf<int32_t>({1, 0, 7, 8, 0, 1, 2, 3}));
  EXPECT_EQ(Labels("format: dlrm_binary\nfiles: [d.bin]\n", Small()), (std::vector<float>{1, 0}));

  // Hotness from the model's lookups: 2 and 1.
  const std::string raw = BytesOf<float>({1, 0.5F}) + BytesOf<int32_t>({1, 2, 3});
  DataTestFile("h.bin", raw + raw);
  EXPECT_EQ(Labels("format: hugectr_raw\nfiles: [h.bin]\n", Small()), (std::vector<float>{1, 1}));
  EXPECT_EQ(Labels("format: hugectr_raw\nfiles: [h.bin]\nhotness: [1, 2]\n", Small()), (std::vector<float>{1, 1}));

  DataTestFile("l.npy", NpyText("<i4", "(2,)", BytesOf<int32_t>({1, 0})));
  DataTestFile("x.npy", NpyText("<f4", "(2, 1)", BytesOf<float>({1, 2})));
  DataTestFile("s.npy", NpyText("<i4", "(2, 2)", BytesOf<int32_t>({1, 2, 3, 4})));
  EXPECT_EQ(Labels("format: npy\nfiles:\n  - {labels: l.npy, dense: x.npy, sparse: s.npy}\n", Small()),
            (std::vector<float>{1, 0}));

  DataTestFile("r.dat", "u1::5::9::100\nu2::6::2::50\n");
  BatchSchema movies;
  movies.features = {{"user", 2}, {"item", 2}};
  EXPECT_EQ(Labels("format: movie_tweetings\nfiles: [r.dat]\nthreshold: 8\n", movies), (std::vector<float>{0, 1}));
}

TEST(OpenReaderTest, ShufflesForEpochsAndResumes) {
  DataTestFile("shuffle_day", CriteoText("1111111100000000"));
  const std::string yaml = "format: criteo_tsv\nfiles: [shuffle_day]\nshuffle: {window: 16, seed: 5}\nepochs: 2\n";
  const std::vector<float> labels = Labels(yaml, Criteo());
  ASSERT_EQ(labels.size(), 32u);
  EXPECT_NE(std::vector<float>(labels.begin(), labels.begin() + 16),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  auto reader = *Open(yaml, Criteo());
  Batch batch, next;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(reader->Next(3, &batch));
  const std::string position = reader->Position();
  ASSERT_TRUE(reader->Next(3, &batch));
  auto resumed = *Open(yaml, Criteo());
  ASSERT_TRUE(resumed->Restore(position));
  ASSERT_TRUE(resumed->Next(3, &next));
  EXPECT_EQ(next.labels, batch.labels);
  // Read ahead or not, in more epochs: the same data. With another policy: not.
  EXPECT_TRUE((*Open(yaml + "prefetch: 0\n", Criteo()))->Restore(position));
  EXPECT_FALSE((*Open(yaml + "policy: {missing: skip}\n", Criteo()))->Restore(position));
  EXPECT_FALSE((*Open(yaml, Criteo(), DataSplit::kTrain))
                   ->Restore((*Open("format: criteo_tsv\nfiles: [day_0]\n", Criteo()))->Position()));
}

TEST(OpenReaderTest, PoliciesReachTheReaderAndCountsTheCaller) {
  DataTestFile("policy_day", CriteoText("1") + "broken\n" + CriteoText("0"));
  auto reader = *Open("format: criteo_tsv\nfiles: [policy_day]\npolicy: {bad_line: skip}\n", Criteo());
  Batch batch;
  ASSERT_TRUE(reader->Next(10, &batch));
  EXPECT_EQ(batch.size, 2);
  EXPECT_EQ(reader->Counts().Report(), "line: bad_line: 1 samples skipped\n");
  auto strict = *Open("format: criteo_tsv\nfiles: [policy_day]\n", Criteo());
  const auto outcome = strict->Next(10, &batch);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().file, ::testing::TempDir() + "policy_day");
  EXPECT_EQ(outcome.error().line, 2);
}

TEST(OpenReaderTest, ErrorsNameTheKey) {
  const BatchSchema schema = Criteo();
  EXPECT_NE(ErrorOf("files: [day_0]\n", schema).find("format"), std::string::npos);
  EXPECT_NE(ErrorOf("format: parquet\nfiles: [day_0]\n", schema).find("criteo_tsv"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\n", schema).find("needs 'files'"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: day_0\n", schema).find("files"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: ['']\n", schema).find("is no file name"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [no_such_day]\n", schema).find("no such file"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: ['.']\n", schema).find("is a folder"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [day_0]\nwindow: 3\n", schema).find("window"), std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [day_0]\nshuffle: {window: 0}\n", schema).find("shuffle.window"),
            std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [day_0]\neval_fraction: 1\n", schema).find("eval_fraction"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf("format: criteo_tsv\nfiles: [day_0]\neval_fraction: 0.1\neval_files: [day_1]\n", schema).find("exclude"),
      std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [day_0]\n", schema, DataSplit::kEval).find("has no eval split"),
            std::string::npos);
  EXPECT_NE(ErrorOf("format: criteo_tsv\nfiles: [day_0]\n", Small()).find("the model takes 1 and 2"),
            std::string::npos);
  EXPECT_NE(ErrorOf("format: hugectr_raw\nfiles: [h.bin]\nhotness: [1]\n", Small()).find("has 1 numbers, the model 2"),
            std::string::npos);
  EXPECT_NE(ErrorOf("format: csv\nfiles: [t.csv]\ndescription: no_such.yaml\n", Small()).find("no_such.yaml"),
            std::string::npos);
  BatchSchema fractional = Small();
  fractional.features[0].lookups = 1.5;
  EXPECT_NE(ErrorOf("format: hugectr_raw\nfiles: [h.bin]\n", fractional).find("needs 'hotness'"), std::string::npos);
  fractional.features[0].rows = 0;
  EXPECT_NE(ErrorOf("format: hugectr_raw\nfiles: [h.bin]\n", fractional).find("has 0 rows"), std::string::npos);
}

TEST(OpenReaderTest, SaysWhetherThereIsAnEvalSplit) {
  const auto has = [](const std::string& yaml) { return *HasEvalSplit(*YamlValue::Parse(yaml, "j.yaml")->Map()); };
  EXPECT_FALSE(has("format: csv\nfiles: [a]\n"));
  EXPECT_TRUE(has("eval_fraction: 0.1\n"));
  EXPECT_TRUE(has("eval_files: [a]\n"));
}

}  // namespace
}  // namespace portolan
