#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace portolan {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

class JsonTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("portolan_json_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  long FilesInFolder() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

TEST_F(JsonTest, WritesKeysInOrderAndLeavesNothingBeside) {
  const ordered_json document{{"step_time_s", 0.25}, {"breakdown", {{"compute_s", 0.25}}}};
  ASSERT_TRUE(WriteJsonFile(Path("a.json"), document));
  EXPECT_EQ(Read(Path("a.json")), "{\n  \"step_time_s\": 0.25,\n  \"breakdown\": {\n    \"compute_s\": 0.25\n  }\n}\n");
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(JsonTest, NonFiniteNumbersAreRefusedByPathAndTheOldFileStays) {
  ASSERT_TRUE(WriteJsonFile(Path("a.json"), ordered_json{{"x", 1}}));
  const std::string before = Read(Path("a.json"));
  ordered_json document{{"terms", {1.0, 2.0, {{"exposed_s", std::nan("")}}}}};
  const Status status = WriteJsonFile(Path("a.json"), document);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().field, "terms[2].exposed_s");
  EXPECT_EQ(Read(Path("a.json")), before);
  EXPECT_EQ(FirstNonFinite(ordered_json(std::numeric_limits<double>::infinity())), "the document");
  EXPECT_EQ(FirstNonFinite(ordered_json{{"a", 1.0}, {"b", {1, 2}}}), "");
}

TEST_F(JsonTest, InvalidUtf8IsReplaced) {
  ASSERT_TRUE(WriteJsonFile(Path("a.json"), ordered_json{{"name", "a\xff"}}));
  EXPECT_EQ(ordered_json::parse(Read(Path("a.json")))["name"], "a\xEF\xBF\xBD");
}

TEST_F(JsonTest, EveryFailureToWriteIsAnError) {
  EXPECT_EQ(WriteJsonFile(Path("missing/a.json"), {}).error().code, ErrorCode::kIo);
  EXPECT_EQ(WriteJsonFile(folder_.string(), {}).error().message, "cannot be written: is a folder");
  EXPECT_EQ(WriteJsonFile("", {}).error().code, ErrorCode::kIo);
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(WriteJsonFile("/dev/full", {}).error().code, ErrorCode::kIo);
  }
  EXPECT_EQ(FilesInFolder(), 0);
}

TEST_F(JsonTest, WritesThroughLinksAndToDevices) {
  ASSERT_TRUE(WriteJsonFile(Path("target.json"), 1));
  fs::create_symlink("target.json", folder_ / "link.json");
  ASSERT_TRUE(WriteJsonFile(Path("link.json"), 2));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(Read(Path("target.json")), "2\n");
  EXPECT_TRUE(WriteJsonFile("/dev/null", 3));
}

TEST_F(JsonTest, DashIsStandardOutput) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(WriteJsonFile("-", ordered_json{{"a", 1}}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\n  \"a\": 1\n}\n");
}

}  // namespace
}  // namespace portolan
