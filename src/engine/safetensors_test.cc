#include "engine/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace portolan {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string path = testing::TempDir() + "portolan_safetensors_test.safetensors";
  void TearDown() override { std::filesystem::remove(path); }
  void Put(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  static std::string Header(const std::string& json) {
    const uint64_t length = json.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + json;
  }
};

TEST_F(Safetensors, RoundTrip) {
  float values[] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  uint8_t bytes[] = {7, 8, 9}, bytes_back[3] = {};
  ASSERT_TRUE(WriteSafetensors(path, {{"a", "F32", {2, 3}, values, 24}, {"b", "U8", {3}, bytes, 3}}, {{"step", "7"}}));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->metadata().at("step"), "7");
  ASSERT_TRUE(file->Read({"a", "F32", {2, 3}, back, 24}));
  ASSERT_TRUE(file->Read({"b", "U8", {3}, bytes_back, 3}));
  EXPECT_EQ(std::memcmp(values, back, 24), 0);
  EXPECT_EQ(bytes_back[2], 9);
  EXPECT_FALSE(file->Read({"a", "F32", {3, 2}, back, 24}));
  EXPECT_FALSE(file->Read({"a", "F16", {2, 3}, back, 12}));
  EXPECT_FALSE(file->Read({"c", "F32", {2, 3}, back, 24}));
}

TEST_F(Safetensors, RefusesDamagedFiles) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  Put(Header(good) + std::string(8, 'x'));
  EXPECT_TRUE(SafetensorsFile::Open(path));
  const std::string bad[] = {
      "",
      "short",
      std::string(8, '\xff') + "{}",
      Header("[]"),
      Header("{"),
      Header(good),  // data missing
      Header(R"({"a":1})") + "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})") + "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})") + "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})") + "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})") + "12345678",
      Header(R"({"a":{"dtype":"X","shape":[2],"data_offsets":[0,8]}})") + "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8]}})") +
          "12345678",
      Header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})") + "12345678",
  };
  for (const std::string& bytes : bad) {
    Put(bytes);
    EXPECT_FALSE(SafetensorsFile::Open(path)) << bytes;
  }
  EXPECT_FALSE(SafetensorsFile::Open(testing::TempDir()));
  EXPECT_EQ(SafetensorsFile::Open("/nonexistent/x").error().code, ErrorCode::kNotFound);
}

TEST(SafetensorsDisk, FullIsAnError) {
  std::vector<float> values(1 << 16);
  const Status status = WriteSafetensors("/dev/full", {{"a", "F32", {1 << 16}, values.data(), 4 << 16}}, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

}  // namespace
}  // namespace portolan
