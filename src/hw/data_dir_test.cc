#include <gtest/gtest.h>

#include <filesystem>

#include "hw/catalogue.h"
#include "hw/test_files.h"

namespace portolan {
namespace {

// A user's folder may hold models, recipes or measured steps alone.
TEST(CatalogueTest, FoldersWithoutHardwareAreAccepted) {
  for (const char* folder : {"models", "recipes", "validation"}) {
    const TemporaryFolder user;
    std::filesystem::create_directory(std::filesystem::path(user.path()) / folder);
    const auto catalogue = Catalogue::Load({"data", user.path()});
    EXPECT_TRUE(catalogue) << folder;
  }
  const TemporaryFolder empty;
  EXPECT_FALSE(Catalogue::Load({"data", empty.path()}));
}

// An NVSwitch cannot join nodes.
TEST(CatalogueTest, ScaleOutFabricMustReachAllNodes) {
  const auto catalogue = Catalogue::Load({"data"});
  ASSERT_TRUE(catalogue);
  const auto refused = catalogue->ParseCluster("64xh100", "", "nvlink4");
  ASSERT_FALSE(refused);
  EXPECT_NE(FormatError(refused.error()).find("the scale-out fabric nvlink4 joins at most 8 devices, not 64"),
            std::string::npos)
      << FormatError(refused.error());
  EXPECT_TRUE(catalogue->ParseCluster("8xh100", "", "nvlink4"));  // one node needs no NIC
}

}  // namespace
}  // namespace portolan
