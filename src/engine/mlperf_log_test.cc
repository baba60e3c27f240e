#include "engine/mlperf_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace portolan {
namespace {

TEST(MlperfLog, WritesOneObjectALine) {
  EXPECT_EQ(MlperfLine(1701, MlperfEvent::kPointInTime, "eval_accuracy", 0.8125, {{"epoch_num", 0.25}}),
            ":::MLLOG {\"namespace\":\"\",\"time_ms\":1701,\"event_type\":\"POINT_IN_TIME\",\"key\":\"eval_accuracy\","
            "\"value\":0.8125,\"metadata\":{\"epoch_num\":0.25}}");
  EXPECT_EQ(MlperfLine(0, MlperfEvent::kIntervalStart, "run_start", {}, {}),
            ":::MLLOG {\"namespace\":\"\",\"time_ms\":0,\"event_type\":\"INTERVAL_START\",\"key\":\"run_start\","
            "\"value\":null,\"metadata\":{}}");
  const std::string text = MlperfLine(0, MlperfEvent::kIntervalEnd, "a \"b\"\n\xff", std::string("c\\d"),
                                      {{"n", int64_t{3}}, {"nan", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_NE(
      text.find("\"key\":\"a \\\"b\\\"\\n\xEF\xBF\xBD\",\"value\":\"c\\\\d\",\"metadata\":{\"n\":3,\"nan\":null}"),
      std::string::npos)
      << text;
}

TEST(MlperfLog, AppendsAndNamesAFileThatCannotBeWritten) {
  const std::string path = testing::TempDir() + "mlperf_log_test.log";
  std::filesystem::remove(path);
  for (const int64_t seed : {1, 2}) {
    auto log = MlperfLog::Open(path);
    ASSERT_TRUE(log) << FormatError(log.error());
    ASSERT_TRUE(log->Add(MlperfEvent::kPointInTime, "seed", seed));
  }
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) EXPECT_EQ(line.substr(0, 10), ":::MLLOG {");
  EXPECT_EQ(lines, 2);
  const auto missing = MlperfLog::Open(testing::TempDir() + "no/such/folder/log");
  ASSERT_FALSE(missing);
  EXPECT_NE(FormatError(missing.error()).find("no/such/folder/log"), std::string::npos);
}

}  // namespace
}  // namespace portolan
