#include "engine/run_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace portolan {
namespace {

// The check value of CRC-32C in the literature: "123456789".
TEST(Crc32c, CheckValue) { EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u); }

TEST(EventWriter, WritesFramedRecords) {
  const std::string folder = testing::TempDir() + "portolan_events_test";
  std::filesystem::remove_all(folder);
  auto writer = EventWriter::Open(folder);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->Add(300, {{"train/loss", 0.5}, {"train/auc", NAN}}));
  const auto path = std::filesystem::directory_iterator(folder)->path();
  EXPECT_NE(path.string().find("tfevents"), std::string::npos);
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  size_t at = 0;
  std::string last;
  int records = 0;
  while (at < bytes.size()) {
    uint64_t length;
    std::memcpy(&length, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + length, bytes.size());
    last = bytes.substr(at + 12, length);
    uint32_t stored;
    std::memcpy(&stored, bytes.data() + at + 12 + length, 4);
    const uint32_t unmasked = stored - 0xa282ead8u;
    EXPECT_EQ((unmasked >> 17) | (unmasked << 15), Crc32c(last.data(), last.size()));
    at += 16 + length;
    ++records;
  }
  EXPECT_EQ(records, 2);
  // step 300 = varint ac 02 in field 2; the value that is not finite is left out.
  EXPECT_NE(last.find("\x10\xac\x02"), std::string::npos);
  EXPECT_NE(last.find("train/loss"), std::string::npos);
  EXPECT_EQ(last.find("train/auc"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(ChromeTrace, IsJsonWithOneEventAPhase) {
  const std::string path = testing::TempDir() + "portolan_trace_test.json";
  ChromeTrace trace;
  trace.Add(1, {{"forward", 1.0, 1.5}, {"backward", 1.5, 2.5}});
  ASSERT_TRUE(trace.Write(path));
  const nlohmann::json read = nlohmann::json::parse(std::ifstream(path));
  ASSERT_EQ(read["traceEvents"].size(), 2u);
  EXPECT_EQ(read["traceEvents"][1]["dur"], 1e6);
  EXPECT_EQ(read["traceEvents"][1]["args"]["step"], 1);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace portolan
