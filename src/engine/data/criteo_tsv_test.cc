#include "engine/data/criteo_tsv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/data_test_files.h"
#include "engine/data/sample_reader.h"
#include "engine/data/text_fields.h"

namespace portolan {
namespace {

BatchSchema Schema(int64_t rows) {
  BatchSchema schema;
  schema.dense_width = 13;
  for (int i = 1; i <= 26; ++i) schema.features.push_back({"C" + std::to_string(i), rows});
  return schema;
}

// A line whose dense values all read `dense` and whose categories all read `category`.
std::string Line(const std::string& label, const std::string& dense, const std::string& category) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + dense;
  for (int i = 0; i < 26; ++i) line += "\t" + category;
  return line + "\n";
}

std::unique_ptr<SampleReader> Open(const std::vector<std::string>& paths, PolicyBook policies = CriteoPolicies(),
                                   CriteoOptions options = {}, int64_t rows = 1000, SampleOrder order = {}) {
  auto parts = SplitTextFiles(paths, 0);
  EXPECT_TRUE(parts) << FormatError(parts.error());
  options.parts = parts->train;
  auto source = OpenCriteoTsv(options, Schema(rows), std::move(policies));
  EXPECT_TRUE(source) << FormatError(source.error());
  return std::make_unique<SampleReader>(std::move(*source), Schema(rows), order, "criteo");
}

PolicyBook With(const std::string& yaml) {
  PolicyBook policies = CriteoPolicies();
  YamlMap map = *YamlValue::Parse(yaml, "job.yaml")->Map();
  policies.Read(&map, {1});
  const Status status = map.Finish();
  EXPECT_TRUE(status) << FormatError(status.error());
  return policies;
}

std::string ErrorOf(Reader* reader) {
  Batch batch;
  const auto outcome = reader->Next(100, &batch);
  EXPECT_EQ(batch.size, outcome ? batch.size : 0);
  return outcome ? "no error" : FormatError(outcome.error());
}

TEST(TextFieldsTest, DigitsOfEveryLengthAndEveryByte) {
  std::string text(8, '7');
  for (int64_t length = 0; length <= 8; ++length) {
    const std::string digits = std::string("98765432").substr(0, length);
    const std::string padded = "zzzzzzzz" + digits;
    uint32_t value = 1;
    EXPECT_TRUE(ParseDigits(padded.data() + padded.size(), length, &value));
    EXPECT_EQ(value, length == 0 ? 0 : std::stoul(digits));
  }
  for (int place = 0; place < 8; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      text.assign(8, '7');
      text[place] = static_cast<char>(byte);
      uint32_t value = 0;
      ASSERT_EQ(ParseDigits(text.data() + 8, 8, &value), byte >= '0' && byte <= '9') << place << " " << byte;
      if (byte >= '0' && byte <= '9') {
        ASSERT_EQ(value, std::stoul(text));
      }
    }
  }
}

TEST(TextFieldsTest, HexadecimalOfEveryByteInEveryPlace) {
  for (int place = 0; place < 8; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = "9aF0c3B8";
      text[place] = static_cast<char>(byte);
      const bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
      uint32_t value = 0;
      ASSERT_EQ(ParseHex8(text.data(), &value), digit) << place << " " << byte;
      if (digit) {
        ASSERT_EQ(value, std::stoul(text, nullptr, 16)) << text;
      }
    }
  }
}

TEST(IdMapTest, ModuloByMultiplicationIsModulo) {
  for (const int64_t rows :
       {1LL, 2LL, 3LL, 7LL, 1000LL, 65536LL, 40000000LL, 4294967295LL, 4294967296LL, 5000000000LL}) {
    const IdMap map(IdRule::kModulo, rows);
    uint64_t x = 1;
    for (int i = 0; i < 1000; ++i) {
      x = MixBits(x);
      const uint32_t number = static_cast<uint32_t>(i < 4 ? 0xfffffffcU + i : x);
      if (rows < 4294967296LL) {
        ASSERT_EQ(map.Modulo32(number), number % rows) << rows;
      }
      int64_t id = -1;
      ASSERT_TRUE(map.Map(number, &id));
      ASSERT_EQ(id, number % rows);
    }
  }
}

TEST(CriteoTsvTest, ReadsByHand) {
  // 0x000003ff = 1023 = 23 mod 1000; 0xABCDEF01 = 2882400001 = 1 mod 1000.
  const std::string path =
      DataTestFile("criteo_hand.txt", Line("1", "3", "000003ff") + Line("0", "123456789", "ABCDEF01"));
  auto reader = Open({path});
  Batch batch;
  ASSERT_EQ(*reader->Next(5, &batch), ReadOutcome::kBatch);
  ASSERT_EQ(batch.size, 2);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0}));
  ASSERT_EQ(batch.dense.size(), 26u);
  EXPECT_EQ(batch.dense[0], std::log(4.0F));
  EXPECT_EQ(batch.dense[12], std::log(4.0F));
  EXPECT_EQ(batch.dense[13], std::log(123456789.0F + 1.0F));
  ASSERT_EQ(batch.ids.size(), 52u);
  for (int f = 0; f < 26; ++f) {  // feature by feature
    EXPECT_EQ(batch.ids[2 * f], 23);
    EXPECT_EQ(batch.ids[2 * f + 1], 1);
  }
  ASSERT_EQ(batch.offsets.size(), 53u);
  for (int i = 0; i <= 52; ++i) EXPECT_EQ(batch.offsets[i], i);
  EXPECT_EQ(*reader->Next(5, &batch), ReadOutcome::kEnd);
  EXPECT_EQ(batch.size, 0);
  EXPECT_TRUE(batch.ids.empty());
  EXPECT_EQ(reader->Counts().samples, 2);
  EXPECT_EQ(reader->Counts().Report(), "");
}

TEST(CriteoTsvTest, ColumnsKeepTheirOrder) {
  std::string line = "0";
  for (int i = 0; i < 13; ++i) line += "\t" + std::to_string(i);
  for (int i = 0; i < 26; ++i) line += "\t000000" + std::string(i < 16 ? "0" : "1") + "0123456789abcdef"[i % 16];
  auto reader = Open({DataTestFile("criteo_order.txt", line + "\n" + line)});  // no newline at the end
  Batch batch;
  ASSERT_TRUE(reader->Next(2, &batch));
  ASSERT_EQ(batch.size, 2);
  for (int i = 0; i < 13; ++i) EXPECT_EQ(batch.dense[13 + i], std::log(static_cast<float>(i) + 1.0F));
  for (int f = 0; f < 26; ++f) EXPECT_EQ(batch.ids[2 * f + 1], f);
}

TEST(CriteoTsvTest, MissingAndNegativeAreTheFormatsOwnAndCounted) {
  auto reader = Open({DataTestFile("criteo_missing.txt", Line("1", "", "") + Line("0", "-2", "0000000a"))});
  Batch batch;
  ASSERT_TRUE(reader->Next(2, &batch));
  ASSERT_EQ(batch.size, 2);
  for (const float x : batch.dense) EXPECT_EQ(x, 0);
  EXPECT_EQ(batch.ids[0], 0);
  EXPECT_EQ(batch.ids[1], 10);
  const ReadCounts counts = reader->Counts();
  ASSERT_EQ(counts.columns.size(), 41u);  // line, label, 39 columns
  EXPECT_EQ(counts.columns[2].name, "I1");
  EXPECT_EQ(counts.columns[2].clamped[0], 1);
  EXPECT_EQ(counts.columns[2].clamped[1], 1);
  EXPECT_EQ(counts.columns[40].name, "C26");
  EXPECT_EQ(counts.columns[40].clamped[0], 1);
  EXPECT_NE(counts.Report().find("I13: negative: 1 clamped\n"), std::string::npos);
}

TEST(CriteoTsvTest, SignedTransformAndHash) {
  CriteoOptions options;
  options.transform = DenseTransform::kSignedLog1p;
  options.ids = IdRule::kHash;
  auto reader = Open({DataTestFile("criteo_signed.txt", Line("1", "-2", "0000000a"))}, CriteoPolicies(), options);
  Batch batch;
  ASSERT_TRUE(reader->Next(2, &batch));
  EXPECT_EQ(batch.dense[0], -std::log(3.0F));
  EXPECT_EQ(batch.ids[0], static_cast<int64_t>(ScaleBits(MixBits(10), 1000)));
}

TEST(CriteoTsvTest, ErrorsNameFileLineAndColumn) {
  const std::string good = Line("1", "3", "000003ff");
  const auto error = [&](const std::string& line) {
    const std::string path = DataTestFile("criteo_bad.txt", good + good + line + good);
    return ErrorOf(Open({path}).get());
  };
  const std::string at = ::testing::TempDir() + "criteo_bad.txt:3: ";
  EXPECT_EQ(error(Line("2", "3", "000003ff")), at + "label: '2' cannot be read; accepted: 0 or 1");
  EXPECT_EQ(error(Line("", "3", "000003ff")), at + "label: is missing; accepted: 0 or 1");
  EXPECT_EQ(error(Line("1", "3.5", "000003ff")), at + "I1: '3.5' cannot be read; accepted: a whole number of 64 bits");
  EXPECT_EQ(error(Line("1", "99999999999999999999", "000003ff")),
            at + "I1: '99999999999999999999' cannot be read; accepted: a whole number of 64 bits");
  EXPECT_EQ(error(Line("1", "nan", "000003ff")), at + "I1: 'nan' cannot be read; accepted: a whole number of 64 bits");
  EXPECT_EQ(error(Line("1", "3", "000003fg")),
            at + "C1: '000003fg' cannot be read; accepted: 1 to 8 hexadecimal digits");
  EXPECT_EQ(error(Line("1", "3", "0000003ff")),
            at + "C1: '0000003ff' cannot be read; accepted: 1 to 8 hexadecimal digits");
  EXPECT_EQ(error("1\t2\t3\n"), at + "the line has 3 fields, not 40 (label, I1 to I13, C1 to C26; TAB-separated)");
  EXPECT_NE(error(good.substr(2)).find("39 of 40 fields (Criteo's test files have no label"), std::string::npos);
  EXPECT_NE(error("\n").find(":3: the line has 1 fields"), std::string::npos);
  EXPECT_NE(error(good.substr(0, good.size() - 1) + "\tx\n").find(":3: the line has 41 fields"), std::string::npos);
  EXPECT_NE(error(std::string(10 << 20, '1') + "\n").find(":3: the line has more than 1048576 bytes"),
            std::string::npos);
  EXPECT_NE(error(std::string("\0\xff\x80\x7f", 4) + "\n").find(":3: the line has 1 fields"), std::string::npos);
}

TEST(CriteoTsvTest, AnErrorStaysUntilRestore) {
  auto reader = Open({DataTestFile("criteo_sticky.txt", Line("1", "3", "000003ff") + "x\n")});
  const std::string start = reader->Position();
  const std::string first = ErrorOf(reader.get());
  EXPECT_NE(first, "no error");
  EXPECT_EQ(ErrorOf(reader.get()), first);
  ASSERT_TRUE(reader->Restore(start));
  Batch batch;
  EXPECT_TRUE(reader->Next(1, &batch));
  EXPECT_EQ(batch.size, 1);
}

TEST(CriteoTsvTest, SkipLeavesOutAndCounts) {
  const std::string good = Line("1", "3", "000003ff");
  const std::string text = good + "1\t2\n" + good + Line("7", "3", "000003ff") + std::string(3 << 20, 'x') + "\n" +
                           Line("0", "4", "zzzzzzzz") + good;
  auto reader = Open({DataTestFile("criteo_skip.txt", text)}, With("policy: {bad_value: skip, bad_line: skip}"));
  Batch batch;
  ASSERT_TRUE(reader->Next(100, &batch));
  EXPECT_EQ(batch.size, 3);
  const ReadCounts counts = reader->Counts();
  EXPECT_EQ(counts.samples, 3);
  EXPECT_EQ(counts.skipped, 4);
  EXPECT_EQ(counts.Report(),
            "line: bad_line: 2 samples skipped\nlabel: bad_value: 1 samples skipped\n"
            "C1: bad_value: 1 samples skipped\n");
}

TEST(CriteoTsvTest, ClampFillsAShortLineAndCutsALongOne) {
  const std::string good = Line("1", "3", "000003ff");
  const std::string text = "1\t7\n" + good.substr(0, good.size() - 1) + "\tmore\n" + Line("0", "x", "zz");
  auto reader = Open({DataTestFile("criteo_clamp.txt", text)}, With("policy: {bad_line: clamp, bad_value: clamp}"));
  Batch batch;
  ASSERT_TRUE(reader->Next(100, &batch));
  ASSERT_EQ(batch.size, 3);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(batch.dense[0], std::log(8.0F));
  EXPECT_EQ(batch.dense[1], 0);
  EXPECT_EQ(batch.dense[13], std::log(4.0F));
  EXPECT_EQ(batch.dense[26], 0);
  EXPECT_EQ(batch.ids[0], 0);
  EXPECT_EQ(batch.ids[1], 23);
  EXPECT_EQ(reader->Counts().columns[0].clamped[4], 2);
}

// A table of more than 2^32 rows turns the fast way off.
TEST(CriteoTsvTest, TheFastWayIsTheSameAsFieldByField) {
  std::string text;
  uint64_t state = 1;
  const auto random = [&state](uint64_t bound) { return ScaleBits(state = MixBits(state), bound); };
  const char* numbers[] = {"",     "0",    "7",        "-1",        "-0",         "-99",
                           "2047", "2048", "12345678", "123456789", "4294967296", "-123456789"};
  const char* categories[] = {"", "0", "a", "0000000a", "FFFFFFFF", "fffffffe", "1234567", "68fd1e64", "7fffffff"};
  for (int line = 0; line < 3000; ++line) {
    text += random(2) == 0 ? "0" : "1";
    for (int i = 0; i < 13; ++i) text += std::string("\t") + numbers[random(random(2) == 0 ? 3 : std::size(numbers))];
    for (int i = 0; i < 26; ++i) text += std::string("\t") + categories[random(std::size(categories))];
    text += random(3) == 0 ? "\r\n" : "\n";
  }
  const std::string path = DataTestFile("criteo_ways.txt", text);
  for (const int64_t rows : {1LL, 1000LL, 40000000LL, 4294967295LL, 4294967296LL}) {
    auto fast = Open({path}, CriteoPolicies(), {}, rows);
    CriteoOptions options;
    options.parts = SplitTextFiles({path}, 0)->train;
    BatchSchema wide = Schema(rows);
    wide.features[25].rows = int64_t{1} << 33;
    SampleReader slow(*OpenCriteoTsv(options, wide, CriteoPolicies()), wide, {}, "criteo");
    Batch a, b;
    ASSERT_TRUE(fast->Next(5000, &a));
    ASSERT_TRUE(slow.Next(5000, &b));
    ASSERT_EQ(a.size, 3000);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.dense, b.dense);
    for (int64_t i = 0; i < 26 * 3000; ++i) ASSERT_EQ(a.ids[i], i < 25 * 3000 ? b.ids[i] : b.ids[i] % rows) << i;
    EXPECT_EQ(fast->Counts().Report(), slow.Counts().Report());
  }
}

TEST(CriteoTsvTest, ExactIdsHaveARange) {
  CriteoOptions options;
  options.ids = IdRule::kExact;
  const std::string path = DataTestFile("criteo_range.txt", Line("1", "3", "000003ff"));
  EXPECT_NE(ErrorOf(Open({path}, CriteoPolicies(), options, 1023).get())
                .find("C1: '000003ff' is out of range; accepted: below 3ff (rows)"),
            std::string::npos);
  EXPECT_EQ(ErrorOf(Open({path}, CriteoPolicies(), options, 1024).get()), "no error");
  auto clamped = Open({path}, With("policy: {out_of_range: clamp}"), options, 5);
  Batch batch;
  ASSERT_TRUE(clamped->Next(1, &batch));
  EXPECT_EQ(batch.ids[0], 4);
}

TEST(CriteoTsvTest, WindowsLineEndsAndSeveralFiles) {
  std::string windows = Line("1", "3", "000003ff");
  windows.insert(windows.size() - 1, "\r");
  auto reader =
      Open({DataTestFile("criteo_a.txt", windows + windows), DataTestFile("criteo_b.txt", Line("0", "1", "1"))});
  Batch batch;
  ASSERT_TRUE(reader->Next(10, &batch));
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(batch.ids[25 * 3], 23);
  EXPECT_EQ(batch.ids[2], 1);
}

TEST(CriteoTsvTest, ASchemaOfAnotherShapeIsRefused) {
  BatchSchema schema = Schema(10);
  schema.features.pop_back();
  const auto source = OpenCriteoTsv({}, schema, CriteoPolicies());
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("the model takes 13 and 25"), std::string::npos);
}

}  // namespace
}  // namespace portolan
