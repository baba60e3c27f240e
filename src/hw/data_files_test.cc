// The built-in accelerator and fabric files, read from data/ (tests run in the source folder).
#include <gtest/gtest.h>

#include <cmath>

#include "hw/catalogue.h"

namespace portolan {
namespace {

class DataFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Catalogue> loaded = Catalogue::Load({"data"});
    ASSERT_TRUE(loaded) << FormatError(loaded.error());
    catalogue_ = std::move(*loaded);
  }
  const Accelerator& Get(const std::string& id) const { return catalogue_.accelerators().at(id); }
  Catalogue catalogue_;
};

TEST_F(DataFilesTest, EveryPromisedIdLoads) {
  for (const char* id : {"mi250x", "mi300x", "mi325x", "mi350x", "mi355x", "a100", "h100", "h200", "b200", "b300",
                         "cpu", "a40", "v100", "a100_40g"}) {
    EXPECT_TRUE(catalogue_.FindAccelerator(id)) << id;
  }
  for (const char* id : {"xgmi_mi250x", "xgmi_mi300", "xgmi_mi350", "nvlink2", "nvlink3", "nvlink4", "nvlink5",
                         "nvlink5_nvl72", "pcie_gen4", "pcie_gen5", "nic_200g", "nic_400g", "nic_800g"}) {
    EXPECT_TRUE(catalogue_.FindFabric(id)) << id;
  }
}

TEST_F(DataFilesTest, EveryValueHasSourceAndDate) {
  int facts = 0;
  for (const auto& [id, accelerator] : catalogue_.accelerators()) {
    for (const auto& [key, fact] : accelerator.facts) {
      EXPECT_FALSE(fact.source.empty()) << id << " " << key;
      EXPECT_FALSE(fact.date.empty()) << id << " " << key;
      ++facts;
    }
  }
  for (const auto& [id, fabric] : catalogue_.fabrics()) {
    for (const auto& [key, fact] : fabric.facts) {
      EXPECT_FALSE(fact.source.empty()) << id << " " << key;
      EXPECT_FALSE(fact.date.empty()) << id << " " << key << ": a default stands in a built-in file";
    }
  }
  EXPECT_GT(facts, 300);
}

// Peak = units x ops/clock x tensor clock, for each number format for which a file states all three.
TEST_F(DataFilesTest, PeakIsUnitsTimesOpsPerClockTimesClock) {
  int checked = 0;
  std::string names;
  for (const auto& [id, accelerator] : catalogue_.accelerators()) {
    for (const PeakCheck& check : CheckPeaks(accelerator)) {
      const double error = check.product / check.stated - 1;
      EXPECT_LE(std::abs(error), 0.02) << id << " " << DTypeName(check.dtype) << ": product " << check.product.value
                                       << ", stated " << check.stated.value;
      ++checked;
      names += " " + id + "." + DTypeName(check.dtype);
    }
  }
  RecordProperty("peaks_checked", checked);
  std::printf("%d peaks checked:%s\n", checked, names.c_str());
  EXPECT_GE(checked, 60);
}

TEST_F(DataFilesTest, EveryResolvedMemberHasAValue) {
  for (const auto& [id, a] : catalogue_.accelerators()) {
    EXPECT_GT(a.compute_units, 0) << id;
    EXPECT_GT(a.wave_size, 0) << id;
    EXPECT_GT(a.clock_boost.value, 0) << id;
    EXPECT_GT(a.sustained_matrix[DType::kBf16].value, 0) << id;
    EXPECT_GT(a.sustained_matrix[DType::kFp16].value, 0) << id;
    EXPECT_GT(a.peak_vector_fp32.value, 0) << id;
    EXPECT_GT(a.transcendental_per_s, 0) << id;
    EXPECT_GT(a.shared_memory_per_unit.value, 0) << id;
    EXPECT_GT(a.registers_per_unit.value, 0) << id;
    EXPECT_GT(a.l2.value, 0) << id;
    EXPECT_GT(a.l2_rate.value, 0) << id;
    EXPECT_EQ(a.mall.value > 0, a.mall_rate.value > 0) << id;
    EXPECT_GT(a.hbm_sustained.value, 0) << id;
    EXPECT_LE(a.hbm_sustained, a.hbm_peak) << id;
    EXPECT_GT(a.memory_line.value, 0) << id;
    EXPECT_GT(a.kernel_fixed.value, 0) << id;
    EXPECT_GT(a.host_launch.value, 0) << id;
    EXPECT_GT(a.host_link.value, 0) << id;
    EXPECT_GT(a.power_w, 0) << id;
    for (const std::string& name : DTypeNames()) {
      const DType dtype = *ParseDType(name);
      EXPECT_LE(a.sustained_matrix[dtype], a.peak_matrix[dtype]) << id << " " << name;
      EXPECT_EQ(a.sustained_matrix[dtype].value > 0, a.peak_matrix[dtype].value > 0) << id << " " << name;
    }
  }
}

TEST_F(DataFilesTest, KnownFigures) {
  EXPECT_DOUBLE_EQ(Get("mi350x").hbm / Get("b200").hbm, 1.6);  // 288 / 180
  EXPECT_EQ(Get("mi300x").l2, Bytes(8.0 * 4194304));           // 8 dies of 4 MiB
  EXPECT_EQ(Get("mi300x").mall, Bytes(268435456));
  EXPECT_EQ(Get("h100").mall, Bytes(0));
  EXPECT_EQ(Get("mi350x").peak_matrix[DType::kTf32].value, 0);  // gfx950 has no tf32 matrix instruction
  EXPECT_EQ(Get("mi355x").wave_size, 64);
  EXPECT_EQ(Get("b200").wave_size, 32);
  // 132 SMs x 16 results a clock x 1.98 GHz = 4.18e12.
  EXPECT_NEAR(Get("h200").transcendental_per_s, 4.18e12, 0.01e12);
  const Fabric& mesh = catalogue_.fabrics().at("xgmi_mi350");
  EXPECT_EQ(mesh.topology, Topology::kFullMesh);
  EXPECT_DOUBLE_EQ(mesh.link_peak.value * 7, mesh.device_peak.value);  // 7 x 76.8 = 537.6 GB/s
  EXPECT_EQ(catalogue_.fabrics().at("nvlink5_nvl72").max_devices, 72);
  EXPECT_EQ(Get("b300").scale_out_fabric, "nic_800g");
}

// The H100 file does not state its L2 rate: the family's only one is the H200's, 9.0e12 B/s at the same units and
// clock.
TEST_F(DataFilesTest, InheritsFromTheFamily) {
  const Accelerator& h100 = Get("h100");
  EXPECT_NEAR(h100.l2_rate.value, 9.0e12, 1e6);
  EXPECT_NE(h100.inherited.at("l2_bytes_per_s").find("h200 (same family)"), std::string::npos);
  // MI325X: MI300X's 4.11 / 5.3 of 6.0 TB/s = 4.653 TB/s.
  EXPECT_NEAR(Get("mi325x").hbm_sustained.value, 4.653e12, 0.001e12);
  // MI355X: MI350X's 5.5 / 8.0 of 8.0 TB/s.
  EXPECT_NEAR(Get("mi355x").hbm_sustained.value, 5.5e12, 1e6);
}

}  // namespace
}  // namespace portolan
