#include <gtest/gtest.h>

#include "hw/catalogue.h"

namespace portolan {
namespace {

class ClusterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { catalogue_ = new Catalogue(*Catalogue::Load({"data"})); }
  static void TearDownTestSuite() { delete catalogue_; }
  static Cluster Parse(const std::string& text, const std::string& up = "", const std::string& out = "") {
    const Result<Cluster> cluster = catalogue_->ParseCluster(text, up, out);
    if (cluster) return *cluster;
    ADD_FAILURE() << text << ": " << FormatError(cluster.error());
    return {};
  }
  static std::string Refused(const std::string& text, const std::string& up = "") {
    const Result<Cluster> cluster = catalogue_->ParseCluster(text, up);
    return cluster ? "parsed" : FormatError(cluster.error());
  }
  static Catalogue* catalogue_;
};
Catalogue* ClusterTest::catalogue_ = nullptr;

void ExpectShape(const Cluster& cluster, int devices, int per_node, int nodes) {
  EXPECT_EQ(cluster.devices, devices);
  EXPECT_EQ(cluster.devices_per_node, per_node);
  EXPECT_EQ(cluster.nodes(), nodes);
}

TEST_F(ClusterTest, Grammar) {
  ExpectShape(Parse("mi350x"), 1, 1, 1);
  ExpectShape(Parse("8xmi350x"), 8, 8, 1);
  ExpectShape(Parse("4xh100"), 4, 4, 1);
  ExpectShape(Parse("2x4xh100"), 8, 4, 2);
  ExpectShape(Parse("128xa100"), 128, 8, 16);
  ExpectShape(Parse("16x8xmi250x"), 128, 8, 16);
  ExpectShape(Parse("16xv100"), 16, 8, 2);  // nodes of 8, although NVLink 2 switches join 16
  ExpectShape(Parse("1x16xv100"), 16, 16, 1);
  ExpectShape(Parse("1048576xb200"), 1048576, 8, 131072);
  ExpectShape(Parse("4xcpu"), 4, 1, 4);  // a CPU is a machine
}

TEST_F(ClusterTest, Fabrics) {
  EXPECT_EQ(Parse("8xmi350x").scale_up.id, "xgmi_mi350");
  EXPECT_EQ(Parse("16xh100").scale_out.id, "nic_400g");
  EXPECT_EQ(Parse("16xh100", "", "nic_800g").scale_out.id, "nic_800g");
  ExpectShape(Parse("72xb200", "nvlink5_nvl72"), 72, 72, 1);
  ExpectShape(Parse("64xb200", "nvlink5_nvl72"), 64, 64, 1);
  ExpectShape(Parse("144xb200", "nvlink5_nvl72"), 144, 72, 2);
  EXPECT_NE(Refused("100xb200", "nvlink5_nvl72").find("one node of 72"), std::string::npos);
  EXPECT_NE(Refused("8xb200", "ring").find("unknown fabric 'ring'; known: "), std::string::npos);
}

TEST_F(ClusterTest, RefusedWithWhatWouldBeAccepted) {
  for (const char* text : {"",
                           "0xh100",
                           "-1xh100",
                           "1e9xh100",
                           "1000000000xh100",
                           "1048577xh100",
                           "8 xh100",
                           " 8xh100",
                           "8xh100 ",
                           "8x",
                           "8",
                           "x8h100",
                           "h100x8",
                           "8x8x8xh100",
                           "+8xh100",
                           "0.5xh100",
                           "8x0xh100",
                           "8xx h100",
                           "1048576x8xh100",
                           "99999999999999999999xh100"}) {
    const std::string message = Refused(text);
    EXPECT_NE(message, "parsed") << text;
    EXPECT_NE(message.find("accepted: ID, NxID or RxNxID"), std::string::npos) << text << ": " << message;
  }
  EXPECT_NE(Refused("0xh100").find("the count '0' is not a whole number from 1 to 1048576"), std::string::npos);
  EXPECT_NE(Refused("8xh10").find("known: a100"), std::string::npos);
  EXPECT_NE(
      Refused("12xh100").find("12 devices are more than one node of 8 and not a multiple of it (nearest: 8 or 16"),
      std::string::npos);
  EXPECT_NE(Refused("2x16xh100").find("nvlink4 joins at most 8 devices of one node, not 16"), std::string::npos);
}

}  // namespace
}  // namespace portolan
