#include "engine/data/line_source.h"

#include <gtest/gtest.h>

#include "engine/data/data_test_files.h"

namespace portolan {
namespace {

std::vector<std::string> AllLines(LineSource* source) {
  std::vector<std::string> lines;
  std::string_view line;
  while (*source->Peek(&line)) {
    lines.push_back(source->overlong() ? "(overlong)" : std::string(line));
    source->Pass();
  }
  return lines;
}

std::vector<std::string> AllLines(const std::vector<FilePart>& parts) {
  auto source = LineSource::Open(parts);
  EXPECT_TRUE(source) << FormatError(source.error());
  return AllLines(&*source);
}

std::vector<FilePart> Whole(const std::vector<std::string>& paths) { return SplitTextFiles(paths, 0)->train; }

TEST(LineSourceTest, LineEndsOfEveryKindAndSeveralFiles) {
  const std::string a = DataTestFile("lines_a.txt", "one\ntwo\r\n\nlast");
  const std::string b = DataTestFile("lines_b.txt", "next\n");
  EXPECT_EQ(AllLines(Whole({a, b})), (std::vector<std::string>{"one", "two", "", "last", "next"}));
  EXPECT_EQ(AllLines(std::vector<FilePart>{}), std::vector<std::string>{});
}

TEST(LineSourceTest, LongLinesGrowTheBufferAndOverlongOnesAreMarked) {
  const std::string fits(LineSource::kMaxLineBytes - 1, 'f');
  const std::string text = "a\n" + fits + "\n" + std::string(10 << 20, 'x') + "\nb\n" + std::string(3 << 20, 'y');
  const std::string path = DataTestFile("lines_long.txt", text);
  const auto lines = AllLines(Whole({path}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1], fits);
  EXPECT_EQ(lines[2], "(overlong)");
  EXPECT_EQ(lines[3], "b");
  EXPECT_EQ(lines[4], "(overlong)");
}

TEST(LineSourceTest, SeekFindsEveryLineAgain) {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += std::to_string(i) + (i % 3 == 0 ? "\r\n" : "\n");  // more than one buffer
  const std::vector<FilePart> parts = Whole({DataTestFile("lines_many.txt", text), DataTestFile("lines_c.txt", "z")});
  auto source = LineSource::Open(parts);
  std::vector<std::pair<int64_t, int64_t>> places;
  std::string_view line;
  while (*source->Peek(&line)) {
    places.emplace_back(source->part(), source->offset());
    source->Pass();
  }
  ASSERT_EQ(places.size(), 60001u);
  for (size_t i = 0; i < places.size(); i += 997) {
    ASSERT_TRUE(source->Seek(places[i].first, places[i].second));
    ASSERT_TRUE(*source->Peek(&line));
    EXPECT_EQ(line, std::to_string(i));
  }
  ASSERT_TRUE(source->Seek(2, 0));
  EXPECT_FALSE(*source->Peek(&line));
  for (const auto& [part, offset] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 0}, {0, -1}, {0, 1 << 30}, {2, 1}, {3, 0}}) {
    EXPECT_FALSE(source->Seek(part, offset));
  }
}

TEST(LineSourceTest, ErrorsCountLines) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "abc\n";
  auto source = LineSource::Open(Whole({DataTestFile("lines_error.txt", text)}));
  ASSERT_TRUE(source->Seek(0, 4 * 70000));
  EXPECT_EQ(source->ErrorAt(0, ErrorCode::kParse, "f", "m").value().line, 70001);
  EXPECT_EQ(source->ErrorAt(8, ErrorCode::kParse, "f", "m").value().line, 70003);
}

TEST(LineSourceTest, TheSplitIsAllLinesOnceAtAnyFraction) {
  const std::string a = DataTestFile("split_a.txt", "1\n22\n333\n4444\n");
  const std::string b = DataTestFile("split_b.txt", "55555\n6\n7");
  const auto all = AllLines(Whole({a, b}));
  for (const double fraction : {0.001, 0.1, 0.3, 0.37, 0.5, 0.8, 0.95, 0.999}) {
    const auto split = SplitTextFiles({a, b}, fraction);
    ASSERT_TRUE(split);
    std::vector<std::string> lines = AllLines(split->train);
    const size_t train = lines.size();
    for (const std::string& line : AllLines(split->eval)) lines.push_back(line);
    EXPECT_EQ(lines, all) << fraction;
    // Bytes after the cut are at most the fraction's, and short of it by less than a line.
    int64_t eval_bytes = 0;
    for (const FilePart& part : split->eval) eval_bytes += part.end - part.begin;
    EXPECT_LE(static_cast<double>(eval_bytes), fraction * 23 + 0.51);
    EXPECT_GT(static_cast<double>(eval_bytes), fraction * 23 - 6.51);
    EXPECT_LE(train, all.size());
  }
}

TEST(InputFileTest, WhatIsNoFileIsNamed) {
  const auto error = [](const std::string& path) {
    const auto file = InputFile::Open(path);
    return file ? "no error" : file.error().message;
  };
  EXPECT_EQ(error(::testing::TempDir() + "no_such"), "no such file");
  EXPECT_EQ(error(::testing::TempDir()), "is a folder, not a file");
  EXPECT_EQ(error("/dev/null"), "is not a regular file");
  EXPECT_EQ(error(DataTestFile("empty.txt", "")), "is empty");
  EXPECT_EQ(error(DataTestFile("packed.gz", "\x1f\x8b\x08")), "is gzip-compressed; unpack it first (gunzip)");
  EXPECT_EQ(error(DataTestFile("packed.zst", "\x28\xb5\x2f\xfd")), "is zstd-compressed; unpack it first (unzstd)");
  EXPECT_EQ(error(DataTestFile("one_byte", "\x1f")), "no error");
}

TEST(InputFileTest, AFileThatBecomesShorterIsAnError) {
  const std::string path = DataTestFile("shrinks.txt", "0123456789");
  const auto file = InputFile::Open(path);
  std::filesystem::resize_file(path, 4);
  char bytes[10];
  const Status status = file->ReadAt(0, 10, bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "ends at byte 4, where 6 more were expected");
}

}  // namespace
}  // namespace portolan
