#include "engine/data/csv_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/data_test_files.h"
#include "engine/data/sample_reader.h"

namespace portolan {
namespace {

BatchSchema Schema() {
  BatchSchema schema;
  schema.dense_width = 2;
  schema.features = {{"user", 100}, {"tags", 50}};
  return schema;
}

constexpr const char* kColumns =
    "columns:\n"
    "  - {name: clicked, kind: label}\n"
    "  - {name: price, kind: dense, transform: log1p}\n"
    "  - {name: delta, kind: dense}\n"
    "  - {name: tags, kind: multi_hot, rows: 50}\n"
    "  - {name: uid, kind: categorical, feature: user, ids: modulo}\n";
constexpr const char* kHeader = "clicked,price,delta,tags,uid\n";

std::string ErrorOf(const Status& status) { return status ? "no error" : FormatError(status.error()); }

CsvDescription Described(const std::string& yaml) {
  YamlMap map = *YamlValue::Parse(yaml, "data.yaml")->Map();
  CsvDescription description = CsvDescription::Read(&map, Schema());
  map.Find("policy");
  EXPECT_EQ(ErrorOf(map.Finish()), "no error");
  return description;
}

std::string DescriptionError(const std::string& yaml) {
  YamlMap map = *YamlValue::Parse(yaml, "data.yaml")->Map();
  CsvDescription::Read(&map, Schema());
  return ErrorOf(map.Finish());
}

Result<std::unique_ptr<SampleSource>> Source(const std::string& text, const std::string& yaml = kColumns,
                                             double eval_fraction = 0) {
  const CsvDescription description = Described(yaml);
  PolicyBook policies = CsvPolicies(description);
  YamlMap map = *YamlValue::Parse(yaml, "data.yaml")->Map();
  policies.Read(&map, {1});
  const auto parts = SplitTextFiles({DataTestFile("table.csv", text)}, eval_fraction);
  return OpenCsv(eval_fraction > 0 ? parts->eval : parts->train, description, Schema(), policies);
}

Batch Read(const std::string& text, const std::string& yaml = kColumns, ReadCounts* counts = nullptr) {
  auto source = Source(text, yaml);
  EXPECT_TRUE(source) << FormatError(source.error());
  SampleReader reader(std::move(*source), Schema(), {}, "csv");
  Batch batch;
  const auto outcome = reader.Next(1000, &batch);
  EXPECT_TRUE(outcome) << FormatError(outcome.error());
  if (counts != nullptr) *counts = reader.Counts();
  return batch;
}

std::string ReadError(const std::string& text, const std::string& yaml = kColumns) {
  auto source = Source(text, yaml);
  if (!source) return FormatError(source.error());
  SampleReader reader(std::move(*source), Schema(), {}, "csv");
  Batch batch;
  const auto outcome = reader.Next(1000, &batch);
  return outcome ? "no error" : FormatError(outcome.error());
}

TEST(SplitCsvLineTest, QuotesAndSeparators) {
  const auto split = [](const std::string& line, char separator = ',') -> std::vector<std::string> {
    std::string unquoted;
    std::vector<std::string_view> fields;
    if (!SplitCsvLine(line, separator, &unquoted, &fields)) return {"(bad)"};
    return {fields.begin(), fields.end()};
  };
  using Fields = std::vector<std::string>;
  EXPECT_EQ(split("a,b,,c"), (Fields{"a", "b", "", "c"}));
  EXPECT_EQ(split(""), (Fields{""}));
  EXPECT_EQ(split(","), (Fields{"", ""}));
  EXPECT_EQ(split(R"("a,b","say ""hi""",c)"), (Fields{"a,b", R"(say "hi")", "c"}));
  EXPECT_EQ(split(R"("","")"), (Fields{"", ""}));
  EXPECT_EQ(split(R"("a",)"), (Fields{"a", ""}));
  EXPECT_EQ(split(R"(a"b,c)"), (Fields{R"(a"b)", "c"}));  // a quote inside a field is a byte as any other
  EXPECT_EQ(split("\"a\tb\"\tc", '\t'), (Fields{"a\tb", "c"}));
  for (const char* bad : {"\"a", "\"", "\"a\"b", "x,\"a\"\"", "\"a\" ,b"})
    EXPECT_EQ(split(bad), Fields{"(bad)"}) << bad;
}

TEST(CsvSourceTest, ReadsByHand) {
  const Batch batch = Read(std::string(kHeader) + "1,3,-0.5,4|5,142\n0,\"0\",1e3,,7\r\n1,+1,2,\"6\",8");
  ASSERT_EQ(batch.size, 3);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(batch.dense, (std::vector<float>{std::log(4.0F), -0.5F, 0, 1000, std::log(2.0F), 2}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{42, 7, 8, 4, 5, 6}));  // user, then tags
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 1, 2, 3, 5, 5, 6}));
}

TEST(CsvSourceTest, TheHeaderGivesTheOrderAndOthersArePassedOver) {
  const Batch batch = Read("\xef\xbb\xbfuid,unknown,tags,delta,price,clicked\n8,x,1|2,0.25,0,1\n");
  ASSERT_EQ(batch.size, 1);
  EXPECT_EQ(batch.labels[0], 1);
  EXPECT_EQ(batch.dense, (std::vector<float>{0, 0.25F}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{8, 1, 2}));
  EXPECT_NE(ReadError("uid,tag,delta,price,clicked\n")
                .find("table.csv:1: the header has no column 'tags'; there are: uid, "
                      "tag, delta, price, clicked; did you mean 'tag'?"),
            std::string::npos);
  EXPECT_NE(ReadError("uid,tags,tags,delta,price,clicked\n").find("twice the column 'tags'"), std::string::npos);
}

TEST(CsvSourceTest, WithoutAHeaderColumnsStandInOrder) {
  const std::string yaml = std::string("header: false\nseparator: \"\\t\"\n") +
                           "columns:\n"
                           "  - {name: clicked, kind: label, threshold: 4}\n"
                           "  - {name: note, kind: ignored}\n"
                           "  - {name: price, kind: dense}\n"
                           "  - {name: delta, kind: dense, transform: signed_log1p}\n"
                           "  - {name: user, kind: categorical, ids: exact, digits: hexadecimal}\n"
                           "  - {name: tags, kind: multi_hot, ids: hash, separator: ' '}\n";
  const Batch batch = Read("5\tanything\t2\t-3\t1f\tred green\n3.5\t\t2\t3\t0\t\n", yaml);
  ASSERT_EQ(batch.size, 2);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(batch.dense, (std::vector<float>{2, -std::log(4.0F), 2, std::log(4.0F)}));
  const IdMap hash(IdRule::kHash, 50);
  EXPECT_EQ(batch.ids,
            (std::vector<int64_t>{31, 0, hash.FromBits(HashBytes("red", 3)), hash.FromBits(HashBytes("green", 5))}));
}

TEST(CsvSourceTest, ErrorsNameFileLineAndColumn) {
  const auto error = [](const std::string& line) {
    return ReadError(kHeader + std::string("1,3,1,4,1\n") + line + "\n");
  };
  const std::string at = ::testing::TempDir() + "table.csv:3: ";
  EXPECT_EQ(error("2,3,1,4,1"), at + "clicked: '2' is out of range; accepted: a number from 0 to 1");
  EXPECT_EQ(error("yes,3,1,4,1"), at + "clicked: 'yes' cannot be read; accepted: a number from 0 to 1");
  EXPECT_EQ(error(",3,1,4,1"), at + "clicked: is missing; accepted: a number from 0 to 1");
  EXPECT_EQ(error("1,,1,4,1"), at + "price: is missing; accepted: a number");
  EXPECT_EQ(error("1,-3,1,4,1"), at + "price: '-3' is negative; accepted: at least 0 for log(x + 1)");
  EXPECT_EQ(error("1,nan,1,4,1"), at + "price: 'nan' cannot be read; accepted: a finite number of float32");
  EXPECT_EQ(error("1,+-3,1,4,1"), at + "price: '+-3' cannot be read; accepted: a finite number of float32");
  EXPECT_EQ(error("1,1e39,1,4,1"), at + "price: '1e39' cannot be read; accepted: a finite number of float32");
  EXPECT_EQ(error("1,3,1,50,1"), at + "tags: '50' is out of range; accepted: 0 to 49 (rows - 1)");
  EXPECT_EQ(error("1,3,1,4|,1"), at + "tags: is missing; accepted: an id");
  EXPECT_EQ(error("1,3,1,4||5,1"), at + "tags: is missing; accepted: an id");
  EXPECT_EQ(error("1,3,1,|,1"), at + "tags: is missing; accepted: an id");
  EXPECT_EQ(error("1,3,1,4x,1"), at + "tags: '4x' cannot be read; accepted: a whole number");
  EXPECT_EQ(error("1,3,1,4,-1"), at + "uid: '-1' is negative; accepted: 0 to 99 (rows - 1)");
  EXPECT_EQ(error("1,3,1,4"), at + "the line has 4 fields, not 5");
  EXPECT_EQ(error("1,3,1,4,1,1"), at + "the line has 6 fields, not 5");
  EXPECT_EQ(error(""), at + "the line has 1 fields, not 5");
  EXPECT_EQ(error("1,3,1,\"4,1"), at + "a quote without an end, or text after one");
  EXPECT_EQ(error(std::string(2 << 20, '1')), at + "the line has more than 1048576 bytes");
}

TEST(CsvSourceTest, PoliciesOfSingleColumns) {
  const std::string yaml = std::string(kColumns) + "policy: {bad_line: skip}\n";
  const std::string text = std::string(kHeader) + "1,3,1\n1,3,1,\"4,1\n0,3,1,4,1\n";
  ReadCounts counts;
  EXPECT_EQ(Read(text, yaml, &counts).size, 1);
  EXPECT_EQ(counts.Report(), "line: bad_line: 2 samples skipped\n");

  const CsvDescription description = Described(kColumns);
  PolicyBook policies = CsvPolicies(description);
  YamlMap map =
      *YamlValue::Parse("policy: {missing: clamp}\ncolumn_policy: {tags: {out_of_range: skip}}", "p.yaml")->Map();
  policies.Read(&map, {1});
  EXPECT_EQ(ErrorOf(map.Finish()), "no error");
  const std::string path = DataTestFile("policy.csv", std::string(kHeader) + "1,,1,4,1\n1,3,1,4|99,1\n1,3,1,4,\n");
  auto source = OpenCsv(SplitTextFiles({path}, 0)->train, description, Schema(), policies);
  SampleReader reader(std::move(*source), Schema(), {}, "csv");
  Batch batch;
  ASSERT_TRUE(reader.Next(100, &batch));
  ASSERT_EQ(batch.size, 2);
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{1, 0, 4, 4}));  // nothing of the skipped sample
  EXPECT_EQ(reader.Counts().Report(),
            "price: missing: 1 clamped\ntags: out_of_range: 1 samples skipped\n"
            "uid: missing: 1 clamped\n");
}

TEST(PolicyTest, NamesAndActionsThatDoNotFitAreRefused) {
  const auto error = [](const std::string& yaml) {
    PolicyBook policies = CsvPolicies(Described(kColumns));
    YamlMap map = *YamlValue::Parse(yaml, "p.yaml")->Map();
    policies.Read(&map, {1});
    return ErrorOf(map.Finish());
  };
  EXPECT_NE(error("policy: {missin: clamp}").find("missin"), std::string::npos);
  EXPECT_NE(error("policy: {missing: ignore}").find("ignore"), std::string::npos);
  EXPECT_NE(error("column_policy: {prise: {missing: clamp}}").find("did you mean 'price'?"), std::string::npos);
  EXPECT_NE(error("column_policy: {clicked: {missing: clamp}}").find("a label has no nearest value for 'missing'"),
            std::string::npos);
  EXPECT_EQ(error("column_policy: {clicked: {missing: skip, out_of_range: clamp}}"), "no error");
}

TEST(CsvDescriptionTest, WhatDoesNotFitTheModelIsRefused) {
  EXPECT_NE(DescriptionError("columns: []").find("needs 'columns'"), std::string::npos);
  EXPECT_NE(DescriptionError("separator: ab\ncolumns: [{name: a, kind: label}]").find("must be one byte"),
            std::string::npos);
  EXPECT_NE(DescriptionError("columns: [{name: a}]").find("kind"), std::string::npos);
  EXPECT_NE(DescriptionError("columns: [{name: a, kind: sparse}]").find("sparse"), std::string::npos);
  EXPECT_NE(DescriptionError("columns: [{name: a, kind: label}, {name: a, kind: dense}]").find("'a' stands twice"),
            std::string::npos);
  EXPECT_NE(
      DescriptionError("columns: [{name: tags, kind: multi_hot, rows: 51}]").find("51 rows here, 50 in the model's"),
      std::string::npos);
  const std::string label = "columns:\n  - {name: l, kind: label}\n";
  EXPECT_NE(ReadError("l\n", label).find("no column fills feature 'user'"), std::string::npos);
  EXPECT_NE(ReadError("l\n", label + "  - {name: usr, kind: categorical}\n").find("did you mean 'user'?"),
            std::string::npos);
  const std::string features = "  - {name: user, kind: categorical}\n  - {name: tags, kind: categorical}\n";
  EXPECT_NE(ReadError("l\n", label + features).find("0 columns of kind dense, the model takes 2"), std::string::npos);
  EXPECT_NE(ReadError("l\n", "columns:\n" + features).find("0 columns of kind label"), std::string::npos);
}

TEST(CsvSourceTest, TheEvalPartKnowsTheHeaderAndResumes) {
  std::string text = kHeader;
  for (int i = 0; i < 100; ++i) text += "1,3," + std::to_string(i) + ",4,1\n";
  auto source = Source(text, kColumns, 0.25);
  ASSERT_TRUE(source) << FormatError(source.error());
  SampleReader reader(std::move(*source), Schema(), {}, "csv");
  Batch batch, next, again;
  ASSERT_TRUE(reader.Next(10, &batch));
  EXPECT_GE(batch.dense[1], 74);
  const std::string position = reader.Position();
  ASSERT_TRUE(reader.Next(100, &next));
  EXPECT_EQ(next.dense.back(), 99);
  ASSERT_TRUE(reader.Restore(position));
  ASSERT_TRUE(reader.Next(100, &again));
  EXPECT_EQ(next.dense, again.dense);
}

}  // namespace
}  // namespace portolan
