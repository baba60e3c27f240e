#include "base/yaml.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace portolan {
namespace {

YamlValue Parsed(const std::string& text) {
  Result<YamlValue> value = YamlValue::Parse(text, "f.yaml");
  EXPECT_TRUE(value) << FormatError(value.error());
  return value ? *value : YamlValue();
}

std::string ParseErrorOf(const std::string& text) {
  const Result<YamlValue> value = YamlValue::Parse(text, "f.yaml");
  return value ? "no error" : FormatError(value.error());
}

template <typename T>
std::string ErrorOf(const Result<T>& result) {
  return result ? "no error" : FormatError(result.error());
}

// The error of reading `written` as the value of x.
std::string NumberError(const std::string& written, Range range) {
  return ErrorOf(Parsed("x: " + written).Map()->Find("x")->Number(range));
}
std::string IntegerError(const std::string& written, Range range) {
  return ErrorOf(Parsed("x: " + written).Map()->Find("x")->Integer(range));
}

TEST(YamlValueTest, KindsAndPlaces) {
  const YamlValue root = Parsed("a: 1\nb:\n  - x\n  - {c: 2}\nd:\n");
  ASSERT_TRUE(root.IsMap());
  YamlMap map = *root.Map();
  EXPECT_TRUE(map.Find("a")->IsScalar());
  const YamlValue list = *map.Find("b");
  ASSERT_TRUE(list.IsSequence());
  const YamlValue second = list.Elements()->at(1);
  EXPECT_EQ(second.path(), "b[1]");
  EXPECT_EQ(second.line(), 4);
  EXPECT_EQ(second.file(), "f.yaml");
  EXPECT_EQ(second.Map()->Find("c")->path(), "b[1].c");
  EXPECT_FALSE(map.Find("d").has_value());
  EXPECT_FALSE(map.Has("e"));
}

TEST(YamlValueTest, NumbersAreWholeTokensWithUnderscoresAndByteSuffixes) {
  const auto number = [](const std::string& text) { return Parsed(text).Number({}).value(); };
  EXPECT_EQ(number("40000000"), 4e7);
  EXPECT_EQ(number("4.0e7"), 4e7);
  EXPECT_EQ(number("40_000_000"), 4e7);
  EXPECT_EQ(number("-.5"), -0.5);
  EXPECT_EQ(number("288 GB"), 288e9);
  EXPECT_EQ(number("1.5GiB"), 1.5 * 1073741824.0);
  EXPECT_EQ(number("4 KiB"), 4096.0);
  EXPECT_EQ(number("4kB"), 4000.0);
  EXPECT_EQ(number("2 MiB"), 2097152.0);
  EXPECT_EQ(number("2 MB"), 2e6);
  EXPECT_EQ(number("1TiB"), 1099511627776.0);
  EXPECT_EQ(number("1TB"), 1e12);
  for (const char* bad : {"_1", "1_", "1__0", "1_.5", "12 apples", "0x10", "1e", "GB", "1 GB/s", "1Gb", "1  GB", "-GB",
                          "1e400", "infGB", "true", "''"}) {
    EXPECT_EQ(NumberError(bad, {}).substr(0, 32), "f.yaml:1: x: must be a number, g") << bad;
  }
}

TEST(YamlValueTest, NonFiniteNumbersAreRefusedByName) {
  for (const char* bad : {".nan", "nan", ".inf", "-.inf", "-inf", "1e308 TB"}) {
    EXPECT_EQ(NumberError(bad, {}), std::string("f.yaml:1: x: must be a finite number, got '") + bad + "'");
  }
}

TEST(YamlValueTest, BoundsAreInclusiveAndNamed) {
  EXPECT_EQ(NumberError("0", {0, 1}), "no error");
  EXPECT_EQ(NumberError("1", {0, 1}), "no error");
  EXPECT_EQ(NumberError("1.1", {0, 1}), "f.yaml:1: x: must be between 0 and 1, got '1.1'");
  EXPECT_EQ(NumberError("0", kPositive), "f.yaml:1: x: must be greater than 0, got '0'");
  EXPECT_EQ(NumberError("-1", kNonNegative), "f.yaml:1: x: must be at least 0, got '-1'");
  EXPECT_EQ(NumberError("[1]", kPositive), "f.yaml:1: x: must be a number, got a list");
  EXPECT_EQ(IntegerError("0", {1, 1e13}), "f.yaml:1: x: must be between 1 and 10000000000000, got '0'");
}

TEST(YamlValueTest, ByteSuffixesOnlyWhereTheKeySaysBytes) {
  const auto map = [](const std::string& text) { return YamlMap(*YamlValue::Parse(text, "f.yaml")); };
  EXPECT_EQ(map("hbm_bytes: 288 GB").Number("hbm_bytes", {}), 288e9);
  YamlMap rows = map("rows: 40 GB");
  rows.Integer("rows", {});
  EXPECT_EQ(FormatError(rows.Finish().error()),
            "f.yaml:1: rows: is not in bytes, so it takes no byte suffix, got '40 GB'");
}

TEST(YamlValueTest, IntegersMustBeWhole) {
  const auto integer = [](const std::string& text) { return Parsed(text).Integer({}).value(); };
  EXPECT_EQ(integer("4.0e7"), 40000000);
  EXPECT_EQ(integer("1.5KiB"), 1536);
  EXPECT_EQ(integer("9007199254740993"), 9007199254740993);  // 2^53 + 1 has no double
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(IntegerError("1.5", {}), "f.yaml:1: x: must be a whole number, got '1.5'");
  EXPECT_EQ(IntegerError("1e300", {}), "f.yaml:1: x: must fit a 64-bit integer, got '1e300'");
  EXPECT_EQ(IntegerError("9223372036854775808", {}),
            "f.yaml:1: x: must fit a 64-bit integer, got '9223372036854775808'");
}

TEST(YamlValueTest, OtherScalars) {
  EXPECT_EQ(Parsed("true").Bool().value(), true);
  EXPECT_EQ(Parsed("false").Bool().value(), false);
  EXPECT_EQ(ErrorOf(Parsed("yes").Bool()), "f.yaml:1: must be true or false, got 'yes'");
  EXPECT_EQ(Parsed("'a: b'").String().value(), "a: b");
  EXPECT_EQ(ErrorOf(Parsed("[a]").String()), "f.yaml:1: must be text, got a list");
  EXPECT_EQ(ErrorOf(Parsed("").String()), "f.yaml:1: must be text, got nothing");
  EXPECT_EQ(Parsed("fp16").OneOf({"fp32", "fp16"}).value(), "fp16");
  EXPECT_EQ(ErrorOf(Parsed("fp61").OneOf({"fp16", "bf16"})),
            "f.yaml:1: must be one of fp16, bf16, got 'fp61'; did you mean 'fp16'?");
  EXPECT_EQ(ErrorOf(Parsed("a").Elements()), "f.yaml:1: must be a list, got 'a'");
  EXPECT_EQ(ErrorOf(Parsed("[a]").Map()), "f.yaml:1: must be a map, got a list");
}

TEST(YamlValueTest, MessagesStayShortAndPrintable) {
  EXPECT_EQ(Parsed(std::string(1000, 'x')).Shown(), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(Parsed("\"a\\e[31mb\"").Shown(), "'a?[31mb'");
}

TEST(YamlParseTest, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(ParseErrorOf("a: 1\nb: [1\n").substr(0, 31), "f.yaml:3: is not valid YAML: en");
  EXPECT_EQ(ParseErrorOf("a: *b\n").substr(0, 29), "f.yaml:1: is not valid YAML: ");
  EXPECT_EQ(ParseErrorOf("a: 1\n---\nb: 2\n"), "f.yaml:2: a second document starts here; one file holds one document");
}

TEST(YamlParseTest, DuplicateAndCompoundKeysAreRefused) {
  EXPECT_EQ(ParseErrorOf("a: 1\nb: 2\na: 3\n"),
            "f.yaml:3: key 'a' stands twice in one map; it is first given on line 1");
  EXPECT_EQ(ParseErrorOf("x: {a: 1, a: 1}"), "f.yaml:1: key 'a' stands twice in one map; it is first given on line 1");
  EXPECT_EQ(ParseErrorOf("? [a]\n: 1\n"), "f.yaml:1: a key must be plain text, got a list or a map");
  EXPECT_EQ(ParseErrorOf("~: 1\n"), "f.yaml:1: a key must be plain text, got an empty or compound one");
}

TEST(YamlParseTest, DepthIsLimited) {
  const auto nested = [](int levels) { return std::string(levels, '[') + "1" + std::string(levels, ']'); };
  // The scalar is a level of its own: 63 lists and one number are 64.
  EXPECT_EQ(ParseErrorOf(nested(63)), "no error");
  EXPECT_EQ(ParseErrorOf(nested(64)), "f.yaml:1: nested deeper than 64 levels");
  EXPECT_EQ(ParseErrorOf(nested(100000)), "f.yaml:1: nested deeper than 64 levels");
  // An anchored value of 41 levels inside 40 lists.
  EXPECT_EQ(ParseErrorOf("a: &a " + nested(40) + "\nb: " + std::string(40, '[') + "*a" + std::string(40, ']')),
            "f.yaml:2: nested deeper than 64 levels");
}

TEST(YamlParseTest, AliasesAreSharedAndBounded) {
  YamlMap map = *Parsed("a: &x [1, 2]\nb: *x\n").Map();
  EXPECT_EQ(map.Elements("b").size(), 2u);
  EXPECT_EQ(ParseErrorOf("a: &x [*x]\n"), "f.yaml:1: an alias (*name) stands inside the value that it names");
  // Ten lists of ten aliases each to the one before: 10^10 values when expanded.
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  // Level i has (10^(i+2) - 1) / 9 values; i = 6 is the first above two million.
  EXPECT_EQ(ParseErrorOf(bomb).substr(0, 37), "f.yaml:7: holds more than 2000000 val");
}

TEST(YamlParseTest, SizeIsLimited) {
  EXPECT_EQ(ParseErrorOf(std::string((16 << 20) + 1, ' ')), "f.yaml: is larger than 16 MiB");
}

TEST(YamlLoadTest, FilesThatCannotBeRead) {
  const std::string folder = testing::TempDir();
  EXPECT_EQ(YamlValue::Load(folder + "/does_not_exist.yaml").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(YamlValue::Load(folder).error().message, "is a folder, not a YAML file");
  EXPECT_EQ(YamlValue::Load("/dev/zero").error().message, "is larger than 16 MiB");
  const std::string path = folder + "/portolan_yaml_test.yaml";
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(YamlValue::Load(path)->Map()->Integer("a", {}), 1);
  std::filesystem::remove(path);
}

TEST(YamlMapTest, ReadsFieldsAndFallbacks) {
  YamlMap map = *Parsed("rows: 10\nname: t\nflag: true\nkind: b\nlist: [1, 2]\nempty:\n").Map();
  EXPECT_EQ(map.Integer("rows", {1, 100}), 10);
  EXPECT_EQ(map.Integer("dim", {1, 100}, 64), 64);
  EXPECT_EQ(map.Number("rows", kPositive), 10.0);
  EXPECT_EQ(map.Number("empty", kPositive, 2.5), 2.5);
  EXPECT_EQ(map.String("name"), "t");
  EXPECT_EQ(map.String("other", "fallback"), "fallback");
  EXPECT_TRUE(map.Bool("flag", false));
  EXPECT_EQ(map.OneOf("kind", {"a", "b"}), "b");
  EXPECT_EQ(map.OneOf("kind2", {"a", "b"}, "a"), "a");
  EXPECT_EQ(map.Elements("list").size(), 2u);
  EXPECT_TRUE(map.Elements("list2").empty());
  EXPECT_TRUE(map.ok());
  EXPECT_TRUE(map.Finish());
}

TEST(YamlMapTest, KeepsTheFirstError) {
  YamlMap map = *Parsed("a: x\nb: y\n").Map();
  EXPECT_EQ(map.Integer("a", {}, 5), 5);
  EXPECT_EQ(map.Integer("b", {}, 6), 6);
  bool visited = false;
  map.Visit("b", [&](const YamlValue&) -> Status {
    visited = true;
    return {};
  });
  EXPECT_FALSE(visited);
  EXPECT_EQ(ErrorOf(map.Finish()), "f.yaml:1: a: must be a number, got 'x'");
}

// A reader that words its own error for a missing key gets the unknown one named too; other errors do not.
TEST(YamlMapTest, OwnErrorsForMissingFieldsNameTheUnknownKey) {
  const YamlValue root = Parsed("a: 1\nsms: 2\n");
  YamlMap missing = *root.Map();
  missing.Integer("a", {}, 0);
  missing.Fail(Error{ErrorCode::kMissingField, "is needed", "f.yaml", 1, "compute_units"});
  EXPECT_EQ(ErrorOf(missing.Finish()), "f.yaml:1: compute_units: is needed; 'sms' on line 2 is not a known key");
  YamlMap wrong = *root.Map();
  wrong.Fail(Error{ErrorCode::kInvalidValue, "is too small", "f.yaml", 1, "a"});
  EXPECT_EQ(ErrorOf(wrong.Finish()), "f.yaml:1: a: is too small");
}

TEST(YamlMapTest, MissingFieldsNameTheMap) {
  const YamlValue root = Parsed("tables:\n  - rows: 1\n  - rwos: 1\n");
  YamlMap table = *root.Map()->Find("tables")->Elements()->at(1).Map();
  table.Integer("rows", {});
  EXPECT_EQ(ErrorOf(table.Finish()),
            "f.yaml:3: tables[1].rows: is required but missing; 'rwos' on line 3 is not a known key");
}

TEST(YamlMapTest, UnknownKeysAreRefusedWithWhatIsAccepted) {
  YamlMap map = *Parsed("rows: 1\ndimm: 1\n").Map();
  map.Integer("rows", {});
  map.Integer("dim", {}, 1);
  const Status status = map.Finish();
  EXPECT_EQ(status.error().code, ErrorCode::kUnknownField);
  EXPECT_EQ(ErrorOf(status), "f.yaml:2: dimm: unknown key; accepted: rows, dim; did you mean 'dim'?");
}

TEST(YamlMapTest, EntriesKeepFileOrderAndKnowEveryKey) {
  YamlMap map = *Parsed("z: 1\na:\nm: 3\n").Map();
  const auto entries = map.Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].first, "z");
  EXPECT_TRUE(entries[1].second.IsNull());
  EXPECT_EQ(entries[2].second.path(), "m");
  EXPECT_TRUE(map.Finish());
}

TEST(YamlMapTest, VisitKeepsItsError) {
  YamlMap map = *Parsed("a: 1\n").Map();
  map.Visit("a", [](const YamlValue& value) -> Status { return value.MakeError(ErrorCode::kUnsupported, "no"); });
  map.Visit("b", [](const YamlValue& value) -> Status { return value.MakeError(ErrorCode::kUnsupported, "absent"); });
  EXPECT_EQ(ErrorOf(map.Finish()), "f.yaml:1: a: no");
}

}  // namespace
}  // namespace portolan
