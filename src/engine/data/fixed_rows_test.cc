#include "engine/data/fixed_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/data/binary_test_files.h"
#include "engine/data/data_test_files.h"
#include "engine/data/sample_reader.h"

namespace portolan {
namespace {

// Two dense values; features a and b.
BatchSchema Schema(int64_t rows = 100) {
  BatchSchema schema;
  schema.dense_width = 2;
  schema.features = {{"a", rows}, {"b", rows}};
  return schema;
}

std::unique_ptr<SampleReader> Open(Result<FixedLayout> layout, FixedOptions options = {},
                                   PolicyBook policies = FixedRowPolicies(Schema()), int64_t rows = 100) {
  EXPECT_TRUE(layout) << FormatError(layout.error());
  auto source = OpenFixedRows(std::move(*layout), options, Schema(rows), std::move(policies));
  EXPECT_TRUE(source) << FormatError(source.error());
  return std::make_unique<SampleReader>(std::move(*source), Schema(rows), SampleOrder{}, "fixed");
}

std::string ErrorOf(const Result<FixedLayout>& layout) { return layout ? "no error" : FormatError(layout.error()); }

std::string ErrorOf(Reader* reader) {
  Batch batch;
  const auto outcome = reader->Next(100, &batch);
  return outcome ? "no error" : FormatError(outcome.error());
}

PolicyBook With(const std::string& yaml) {
  PolicyBook policies = FixedRowPolicies(Schema());
  YamlMap map = *YamlValue::Parse(yaml, "job.yaml")->Map();
  policies.Read(&map, {1});
  EXPECT_TRUE(map.Finish());
  return policies;
}

TEST(FixedRowsTest, DlrmBinaryByHand) {
  const std::string a = DataTestFile("dlrm_a.bin", BytesOf<int32_t>({1, 0, 7, 42, 142, 0, 3, -0, 5, 6}));
  const std::string b = DataTestFile("dlrm_b.bin", BytesOf<int32_t>({1, 1, 1, 99, 100}));
  auto reader = Open(DlrmBinaryLayout({a, b}, Schema()), {DenseTransform::kLog1p, IdRule::kModulo});
  Batch batch;
  ASSERT_TRUE(reader->Next(10, &batch));
  ASSERT_EQ(batch.size, 3);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(batch.dense, (std::vector<float>{0, std::log(8.0F), std::log(4.0F), 0, std::log(2.0F), std::log(2.0F)}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{42, 5, 99, 42, 6, 0}));
}

TEST(FixedRowsTest, HugeCtrRawByHand) {
  // Label 1 as float32, dense 0.5 and -2, a = {1, 2}, b = {3}.
  std::string row = BytesOf<float>({1, 0.5F, -2}) + BytesOf<int32_t>({1, 2, 3});
  auto reader = Open(HugeCtrRawLayout({DataTestFile("raw.bin", row + row)}, Schema(), ElementType::kFloat32, {2, 1}));
  Batch batch;
  ASSERT_TRUE(reader->Next(10, &batch));
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 1}));
  EXPECT_EQ(batch.dense, (std::vector<float>{0.5F, -2, 0.5F, -2}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{1, 2, 1, 2, 3, 3}));
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 2, 4, 5, 6}));
  row = BytesOf<int32_t>({1}) + row.substr(4);
  auto whole = Open(HugeCtrRawLayout({DataTestFile("raw_int.bin", row)}, Schema(), ElementType::kInt32, {2, 1}));
  ASSERT_TRUE(whole->Next(10, &batch));
  EXPECT_EQ(batch.labels, std::vector<float>{1});
}

NpyDay WriteDay(const std::string& name, const std::string& sparse, int samples) {
  std::vector<int32_t> labels;
  std::vector<float> dense;
  for (int i = 0; i < samples; ++i) {
    labels.push_back(i % 2);
    dense.push_back(static_cast<float>(i));
    dense.push_back(static_cast<float>(-i));
  }
  return {DataTestFile(name + "_labels.npy", NpyText("<i4", fmt::format("({}, 1)", samples), BytesOf(labels))),
          DataTestFile(name + "_dense.npy", NpyText("<f4", fmt::format("({}, 2)", samples), BytesOf(dense))), sparse};
}

TEST(FixedRowsTest, NpyAndMultiHotNpzByHand) {
  const std::string table = DataTestFile("sparse.npy", NpyText("<i4", "(3, 2)", BytesOf<int32_t>({1, 2, 3, 4, 5, 6})));
  auto reader = Open(NpyLayout({WriteDay("day0", table, 3)}, Schema()));
  Batch batch;
  ASSERT_TRUE(reader->Next(10, &batch));
  EXPECT_EQ(batch.labels, (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(batch.dense, (std::vector<float>{0, 0, 1, -1, 2, -2}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));

  const std::vector<std::pair<std::string, std::string>> members = {
      {"0.npy", NpyText("<i4", "(3, 2)", BytesOf<int32_t>({10, 11, 20, 21, 30, 31}))},
      {"1.npy", NpyText("<i8", "(3, 1)", BytesOf<int64_t>({7, 8, 9}))}};
  for (const auto sizes : {ZipTextOptions::Sizes::k32, ZipTextOptions::Sizes::k64}) {
    const std::string npz = DataTestFile("multi_hot.npz", ZipText(members, {0, sizes, 0}));
    auto multi_hot = Open(NpyLayout({WriteDay("day0", npz, 3), WriteDay("day1", npz, 3)}, Schema()));
    ASSERT_TRUE(multi_hot->Next(4, &batch));
    EXPECT_EQ(batch.ids, (std::vector<int64_t>{10, 11, 20, 21, 30, 31, 10, 11, 7, 8, 9, 7}));
    EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 2, 4, 6, 8, 9, 10, 11, 12}));
  }
}

TEST(FixedRowsTest, ResumesAndSplitsByRows) {
  const std::string table = DataTestFile("long.npy", NpyText("<i4", "(1000, 2)", BytesOf<int32_t>([] {
                                                               std::vector<int32_t> ids(2000);
                                                               for (int i = 0; i < 2000; ++i) ids[i] = i % 97;
                                                               return ids;
                                                             }())));
  const NpyDay day = WriteDay("long", table, 1000);
  FixedLayout train = *NpyLayout({day, day}, Schema());
  FixedLayout eval = SplitLayout(&train, 0.75);  // the second day and the last half of the first
  auto reader = Open(std::move(train));
  auto rest = Open(std::move(eval));
  Batch batch;
  ASSERT_TRUE(reader->Next(700, &batch));
  EXPECT_EQ(batch.size, 500);
  ASSERT_TRUE(rest->Next(450, &batch));
  EXPECT_EQ(batch.dense[0], 500);
  const std::string position = rest->Position();
  Batch next, again;
  ASSERT_TRUE(rest->Next(700, &next));
  ASSERT_TRUE(rest->Restore(position));
  ASSERT_TRUE(rest->Next(700, &again));
  EXPECT_EQ(next.ids, again.ids);
  EXPECT_EQ(next.dense[0], 950);
  EXPECT_EQ(next.size, 700);
}

TEST(FixedRowsTest, ValuesThatAModelCannotTakeAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto row = [](float label, float dense, int32_t id) {
    return BytesOf<float>({label, 1, dense}) + BytesOf<int32_t>({0, id});
  };
  const auto open = [&](const std::string& bad, PolicyBook policies = FixedRowPolicies(Schema())) {
    return Open(
        HugeCtrRawLayout({DataTestFile("bad.bin", row(1, 1, 1) + bad)}, Schema(), ElementType::kFloat32, {1, 1}),
        {DenseTransform::kLog1p, IdRule::kExact}, std::move(policies));
  };
  const std::string at = ::testing::TempDir() + "bad.bin: ";
  EXPECT_EQ(ErrorOf(open(row(1, nan, 1)).get()),
            at + "dense1: sample 1: 'nan' cannot be read; accepted: a finite number of float32");
  EXPECT_EQ(ErrorOf(open(row(1, -1, 1)).get()),
            at + "dense1: sample 1: '-1' is negative; accepted: at least 0 for log(x + 1)");
  EXPECT_EQ(ErrorOf(open(row(2, 1, 1)).get()), at + "label: sample 1: '2' is out of range; accepted: 0 to 1");
  EXPECT_EQ(ErrorOf(open(row(nan, 1, 1)).get()), at + "label: sample 1: 'nan' cannot be read; accepted: 0 to 1");
  EXPECT_EQ(ErrorOf(open(row(1, 1, 100)).get()),
            at + "b: sample 1: '100' is out of range; accepted: 0 to 99 (rows - 1)");
  EXPECT_EQ(ErrorOf(open(row(1, 1, -5)).get()), at + "b: sample 1: '-5' is negative; accepted: 0 to 99 (rows - 1)");

  const std::string all = row(1, nan, 1) + row(1, -1, 1) + row(2, 1, 1) + row(1, 1, 100) + row(1, 1, -5);
  auto clamped = open(all, With("policy: {bad_value: clamp, negative: clamp, out_of_range: clamp}"));
  Batch batch;
  ASSERT_TRUE(clamped->Next(100, &batch));
  ASSERT_EQ(batch.size, 6);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(batch.dense[3], 0);
  EXPECT_EQ(batch.dense[5], 0);
  EXPECT_EQ(std::vector<int64_t>(batch.ids.end() - 2, batch.ids.end()), (std::vector<int64_t>{99, 0}));
  auto skipped = open(all, With("policy: {bad_value: skip, negative: skip, out_of_range: skip}"));
  ASSERT_TRUE(skipped->Next(100, &batch));
  EXPECT_EQ(batch.size, 1);
  EXPECT_EQ(skipped->Counts().skipped, 5);
  EXPECT_EQ(
      skipped->Counts().Report(),
      "label: out_of_range: 1 samples skipped\ndense1: negative: 1 samples skipped\n"
      "dense1: bad_value: 1 samples skipped\nb: negative: 1 samples skipped\nb: out_of_range: 1 samples skipped\n");
}

TEST(FixedRowsTest, FilesOfAnotherModelAreRefused) {
  EXPECT_NE(ErrorOf(DlrmBinaryLayout({DataTestFile("cut.bin", std::string(39, 'x'))}, Schema()))
                .find("39 bytes are no whole number of samples of 20 bytes"),
            std::string::npos);
  const std::string table = DataTestFile("s.npy", NpyText("<i4", "(3, 2)", BytesOf<int32_t>({1, 2, 3, 4, 5, 6})));
  EXPECT_NE(ErrorOf(NpyLayout({WriteDay("d", table, 4)}, Schema())).find("has 3 rows"), std::string::npos);
  const std::string wide = DataTestFile("w.npy", NpyText("<i4", "(2, 3)", BytesOf<int32_t>({1, 2, 3, 4, 5, 6})));
  EXPECT_NE(ErrorOf(NpyLayout({WriteDay("d", wide, 2)}, Schema())).find("has 3 columns, the model 2 features"),
            std::string::npos);
  const std::string floats = DataTestFile("f.npy", NpyText("<f4", "(2, 2)", BytesOf<float>({1, 2, 3, 4})));
  EXPECT_NE(ErrorOf(NpyLayout({WriteDay("d", floats, 2)}, Schema())).find("ids are int32 or int64"), std::string::npos);
  NpyDay day = WriteDay("d", table, 3);
  day.labels = day.dense;
  EXPECT_NE(ErrorOf(NpyLayout({day}, Schema())).find("labels have 1 column, not 2"), std::string::npos);
}

TEST(NpyFileTest, HeadersThatAreNotOursAreRefusedByName) {
  const auto error = [](const std::string& text) {
    const auto array = OpenNpy(DataTestFile("x.npy", text));
    return array ? fmt::format("[{}, {}]", array->rows, array->columns) : array.error().message;
  };
  const std::string data(24, '\0');
  EXPECT_EQ(error(NpyText("<i4", "(3, 2)", data)), "[3, 2]");
  EXPECT_EQ(error(NpyText("<f8", "(3,)", data)), "[3, 1]");
  EXPECT_EQ(error(NpyText("<i4", "(0, 2)", "")), "[0, 2]");
  EXPECT_EQ(error(NpyText(">i4", "(3, 2)", data)), "elements of type '>i4'; accepted: <i4, <i8, <f4, <f8");
  EXPECT_EQ(error(NpyText("|O", "(3, 2)", data)), "elements of type '|O'; accepted: <i4, <i8, <f4, <f8");
  EXPECT_EQ(error(NpyText("<i4", "(3, 2)", data, "True")), "is in Fortran order; save numpy.ascontiguousarray(x)");
  EXPECT_EQ(error(NpyText("<i4", "(1, 2, 3)", data)), "an array of 3 dimensions; accepted: 1 or 2");
  EXPECT_EQ(error(NpyText("<i4", "()", data)), "an array of 0 dimensions; accepted: 1 or 2");
  EXPECT_EQ(error(NpyText("<i4", "(-3, 2)", data)), "shape (-3, 2); at most 1048576 columns");
  EXPECT_EQ(error(NpyText("<i4", "(3, 99999999)", data)), "shape (3, 99999999); at most 1048576 columns");
  EXPECT_EQ(error(NpyText("<i4", "(a, 2)", data)), "the npy header has no readable 'shape'");
  EXPECT_EQ(error(NpyText("<i4", "(4, 2)", data)),
            "is cut off: [4, 2] of int32 takes 8 bytes a row, and 24 bytes follow the header");
  EXPECT_NE(error(NpyText("<i4", "(9223372036854775807, 1048576)", data)).find("is cut off"), std::string::npos);
  EXPECT_EQ(error("not numpy"), "is not a npy file");
  EXPECT_EQ(error(NpyText("<i4", "(3, 2)", data).substr(0, 9)), "is not a npy file");
  EXPECT_NE(error(NpyText("<i4", "(3, 2)", data).substr(0, 40)).find("cut off or too long"), std::string::npos);
  EXPECT_EQ(error(std::string("\x93NUMPY\x09\x00\x00\x00", 10)), "npy version 9; known: 1, 2, 3");
  const std::string valid = NpyText("<i4", "(3, 2)", data);
  for (size_t at = 0; at < valid.size() - 24; ++at) {  // no byte of the header may crash the reader
    for (const char c : {'\0', '\xff', '\'', '('}) {
      std::string damaged = valid;
      damaged[at] = c;
      const auto header = ParseNpyHeader(damaged);
      if (header) {
        EXPECT_GE(header->rows, 0);
      }
    }
  }
}

TEST(ZipMembersTest, DamagedAndCompressedArchivesAreRefusedByName) {
  const std::string npy = NpyText("<i4", "(3, 1)", BytesOf<int32_t>({1, 2, 3}));
  const auto error = [](const std::string& text, const std::string& member = "0") {
    const auto array = OpenNpzMember(DataTestFile("x.npz", text), member);
    return array ? "no error" : array.error().message;
  };
  const std::string good = ZipText({{"0.npy", npy}});
  EXPECT_EQ(error(good), "no error");
  EXPECT_EQ(error(good, "1"), "has no member '1.npy'; there are: 0.npy");
  EXPECT_EQ(error(ZipText({{"0.npy", npy}}, {8, ZipTextOptions::Sizes::k32, 0})),
            "member '0.npy' is compressed (zip method 8); write it with numpy.savez, not savez_compressed");
  EXPECT_NE(error(ZipText({{"0.npy", npy}}, {0, ZipTextOptions::Sizes::k32, 100000})).find("lie outside the file"),
            std::string::npos);
  EXPECT_NE(error(ZipText({{"0.npy", npy}}, {0, ZipTextOptions::Sizes::k64, 4000000000U})).find("lie outside the file"),
            std::string::npos);
  EXPECT_EQ(error("PK"), "is not a zip archive (npz): too short");
  EXPECT_EQ(error(std::string(100, 'x')), "is not a zip archive (npz), or its end is missing");
  EXPECT_EQ(error(good.substr(0, good.size() - 5)), "is not a zip archive (npz), or its end is missing");
  EXPECT_NE(error(good.substr(60)), "no error");  // places no longer fit
  const std::string wide = ZipText({{"0.npy", npy}}, {0, ZipTextOptions::Sizes::k64, 0});
  for (const std::string& text : {good, wide}) {
    for (size_t at = 0; at < text.size(); ++at) {  // no byte may crash the reader or lead it outside the file
      for (const char c : {'\0', '\x7f', '\xff'}) {
        std::string damaged = text;
        damaged[at] = c;
        const std::string path = DataTestFile("x.npz", damaged);
        const auto array = OpenNpzMember(path, "0");
        if (array) {
          ASSERT_LE(array->offset + array->rows * array->columns * ElementBytes(array->type), std::ssize(damaged));
        }
      }
    }
  }
}

}  // namespace
}  // namespace portolan
