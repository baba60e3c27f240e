#include "porting/target.h"

#include <gtest/gtest.h>

#include "porting/test_target.h"

namespace portolan {
namespace {

TEST(FindPortTarget, TakesIdsAndGfxNames) {
  EXPECT_EQ(TestTarget("mi350x").gfx, "gfx950");
  EXPECT_EQ(TestTarget("gfx942").gfx, "gfx942");
  EXPECT_EQ(TestTarget("gfx950").wave_size, 64);
  EXPECT_EQ(TestTarget("gfx950").shared_memory_bytes, 163840);  // 160 KiB
  EXPECT_EQ(TestTarget("gfx942").shared_memory_bytes, 65536);   // 64 KiB
  EXPECT_TRUE(TestTarget("gfx950", "6.3").RocmBefore(7, 0));
  EXPECT_FALSE(TestTarget("gfx950", "7.1").RocmBefore(7, 1));
}

TEST(FindPortTarget, NvidiaChipsTurnItRound) {
  EXPECT_TRUE(TestTarget("h100").to_cuda);
  EXPECT_EQ(TestTarget("sm_90").wave_size, 32);
  EXPECT_FALSE(TestTarget("gfx950").to_cuda);
}

TEST(FindPortTarget, RefusesTheRestAndSaysWhatIsKnown) {
  const auto catalogue = Catalogue::Load({"data"});
  ASSERT_TRUE(catalogue);
  const auto unknown = FindPortTarget(*catalogue, "gfx9999", "6.3");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("mi350x (gfx950)"), std::string::npos);
  EXPECT_FALSE(FindPortTarget(*catalogue, "cpu", "6.3"));
  EXPECT_FALSE(FindPortTarget(*catalogue, "mtia300", "6.3"));
  for (const char* rocm : {"", "6", "5.1", "8.0", "x.y", "6.-1"}) {
    EXPECT_FALSE(FindPortTarget(*catalogue, "gfx950", rocm)) << rocm;
  }
}

}  // namespace
}  // namespace portolan
