#include "hw/catalogue.h"

#include <gtest/gtest.h>

#include "hw/test_files.h"

namespace portolan {
namespace {

Catalogue MustLoad(const std::vector<std::string>& dirs) {
  Result<Catalogue> loaded = Catalogue::Load(dirs);
  if (!loaded) {
    ADD_FAILURE() << FormatError(loaded.error());
    return {};
  }
  return std::move(*loaded);
}

std::string LoadError(const std::vector<std::string>& dirs) {
  const Result<Catalogue> loaded = Catalogue::Load(dirs);
  return loaded ? "loaded" : FormatError(loaded.error());
}

// Loads `text` as accelerators/chip.yaml and returns the error.
std::string ChipError(const std::string& text) {
  const TemporaryFolder folder;
  folder.Write("accelerators/chip.yaml", text);
  return LoadError({"data", folder.path()});
}

void ExpectParts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CatalogueTest, OneMinimalFileIsEnough) {
  const TemporaryFolder folder;
  folder.Write("accelerators/my_chip.yaml", MinimalChip("amd"));
  const Catalogue catalogue = MustLoad({"data", folder.path()});
  const auto cluster = catalogue.ParseCluster("8xmy_chip");
  ASSERT_TRUE(cluster) << FormatError(cluster.error());
  const Accelerator& chip = cluster->accelerator;
  EXPECT_EQ(chip.id, "my_chip");  // the file's name
  EXPECT_EQ(chip.wave_size, 64);  // all AMD files
  EXPECT_EQ(chip.sustained_matrix[DType::kFp16], chip.sustained_matrix[DType::kBf16]);
  EXPECT_EQ(chip.peak_matrix[DType::kFp16].value, 1e15);
  EXPECT_EQ(chip.inherited.at("peak_matrix_flops_per_s.fp16"), "as bf16");
  EXPECT_EQ(chip.peak_matrix[DType::kFp8E4m3].value, 0);  // no such path stated
  EXPECT_EQ(chip.scale_up_fabric, "xgmi_mi300");
  EXPECT_EQ(chip.scale_out_fabric, "nic_400g");
  EXPECT_EQ(chip.mall.value, 0);
  EXPECT_GT(chip.hbm_sustained.value, 0);
  EXPECT_GT(chip.kernel_fixed.value, 0);
}

TEST(CatalogueTest, FilesWithoutFoldersAndSingleFiles) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("chip.yaml", MinimalChip("nvidia"));
  folder.Write("fabric.yaml", "id: ring\ntopology: switch\ndevice_peak_bytes_per_s: " + FactText("1e11") + "\n");
  folder.Write("notes.yaml", "text: nothing to do with hardware\n");
  EXPECT_EQ(MustLoad({"data", folder.path()}).accelerators().count("chip"), 1u);
  EXPECT_EQ(MustLoad({"data", folder.path()}).fabrics().count("ring"), 1u);
  EXPECT_EQ(MustLoad({"data", file}).accelerators().count("chip"), 1u);
}

TEST(CatalogueTest, LaterDirectoryOverridesAnIdAndChangesNoOther) {
  const Catalogue before = MustLoad({"data"});
  const TemporaryFolder folder;
  folder.Write("accelerators/h200.yaml", MinimalChip("nvidia") + "family: hopper\nl2_bytes_per_s: " + FactText("1e12"));
  folder.Write("accelerators/zz.yaml", MinimalChip("nvidia") + "family: hopper\n");
  const Catalogue after = MustLoad({"data", folder.path()});
  EXPECT_EQ(after.accelerators().at("h200").name, "Test chip");
  EXPECT_EQ(after.accelerators().at("zz").inherited.count("l2_bytes_per_s"), 1u);
  EXPECT_EQ(after.accelerators().at("h100").l2_rate, before.accelerators().at("h100").l2_rate);
}

// Two relatives of the family at 0.5 and 0.7 of peak, one of the vendor at 0.9: the median of the family is
// 0.6 x 4e12 = 2.4e12; without a family the vendor's three give 0.7 x 4e12 = 2.8e12; another vendor's chip takes all.
TEST(CatalogueTest, MedianOfTheNearestRelatives) {
  const TemporaryFolder folder;
  const auto chip = [&](const std::string& id, const std::string& vendor, const std::string& more) {
    folder.Write("accelerators/" + id + ".yaml", MinimalChip(vendor) + more);
  };
  folder.Write("fabrics/pcie_gen5.yaml", "topology: pcie\ndevice_peak_bytes_per_s: " + FactText("6e10"));
  chip("a1", "acme", "family: f\nhbm_sustained_bytes_per_s: " + FactText("2.0e12"));
  chip("a2", "acme", "family: f\nhbm_sustained_bytes_per_s: " + FactText("2.8e12"));
  chip("a3", "acme", "family: g\nhbm_sustained_bytes_per_s: " + FactText("3.6e12"));
  chip("b1", "acme", "family: f\n");
  chip("b2", "acme", "");
  chip("b3", "other", "");
  const Catalogue catalogue = MustLoad({folder.path()});
  const auto& all = catalogue.accelerators();
  EXPECT_NEAR(all.at("b1").hbm_sustained.value, 2.4e12, 1);
  EXPECT_EQ(all.at("b1").inherited.at("hbm_sustained_bytes_per_s"),
            "0.6 x hbm_peak_bytes_per_s: median of a1, a2 (same family)");
  EXPECT_NEAR(all.at("b2").hbm_sustained.value, 2.8e12, 1);
  EXPECT_NE(all.at("b2").inherited.at("hbm_sustained_bytes_per_s").find("same vendor"), std::string::npos);
  EXPECT_NEAR(all.at("b3").hbm_sustained.value, 2.8e12, 1);
  EXPECT_NE(all.at("b3").inherited.at("hbm_sustained_bytes_per_s").find("all accelerators"), std::string::npos);
  EXPECT_EQ(all.at("a1").inherited.count("hbm_sustained_bytes_per_s"), 0u);
}

// A number format that no relative states takes the device's own bf16 share: 0.5e15 of 1e15, so 1e15 of 2e15.
TEST(CatalogueTest, SustainedShareOfAnotherFormat) {
  const TemporaryFolder folder;
  folder.Write("accelerators/chip.yaml", MinimalChip("acme") + "  mxfp4: " + FactText("2e15") +
                                             "\nsustained_matrix_flops_per_s:\n  bf16: " + FactText("0.5e15"));
  const Catalogue catalogue = MustLoad({"data", folder.path()});
  EXPECT_DOUBLE_EQ(catalogue.accelerators().at("chip").sustained_matrix[DType::kMxFp4].value, 1e15);
}

TEST(CatalogueTest, ACpuNeverInheritsFromAGpu) {
  const TemporaryFolder folder;
  folder.Write("accelerators/small_cpu.yaml", MinimalChip("cpu"));
  const Catalogue catalogue = MustLoad({"data", folder.path()});
  EXPECT_EQ(catalogue.accelerators().at("small_cpu").wave_size, 8);
  EXPECT_EQ(catalogue.accelerators().at("small_cpu").scale_out_fabric, "ethernet_25g");
}

TEST(CatalogueTest, BadFilesNameFileLineFieldValueAndWhatIsAccepted) {
  const std::string good = MinimalChip("amd");
  const std::string hbm = "hbm_bytes: " + FactText("100e9");
  ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: 100e9")),
              {"chip.yaml:4: hbm_bytes: ", "100e9", "needs its source", "kind: datasheet"});
  ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: {value: 1e11, kind: datasheet}")),
              {"chip.yaml:4: hbm_bytes.source: is required"});
  ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: {value: 1e11, kind: datasheet, source: '  '}")),
              {"chip.yaml:4: hbm_bytes.source: must say where the value comes from"});
  ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: {value: 1e11, kind: guess, source: me}")),
              {"hbm_bytes.kind: must be one of datasheet, measured, derived, assumed, got 'guess'"});
  ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: {value: 1e11, kind: assumed, source: me, date: today}")),
              {"hbm_bytes.date: must be a date yyyy-mm-dd, got 'today'"});
  for (const char* bad : {"-1", "0", ".nan", "nan", "inf", "1e30", "288", "lots"}) {
    ExpectParts(ChipError(Replace(good, hbm, "hbm_bytes: " + FactText(bad))),
                {"chip.yaml:4: hbm_bytes.value: must be ", std::string("got '") + bad + "'"});
  }
  ExpectParts(ChipError(Replace(good, hbm + "\n", "")),
              {"chip.yaml", "hbm_bytes: is required but missing; required: name"});
  ExpectParts(ChipError(good + "hbm_gigabytes: " + FactText("1")),
              {"chip.yaml:8: hbm_gigabytes: unknown key; accepted: ", "hbm_bytes"});
  ExpectParts(ChipError(Replace(good, "  bf16:", "  bf61:")),
              {"chip.yaml:7: peak_matrix_flops_per_s.bf61: unknown number format", "did you mean 'bf16'"});
  ExpectParts(ChipError(Replace(good, FactText("100"), FactText("10.5"))),
              {"chip.yaml:3: compute_units: value must be a whole number, got 10.5"});
  ExpectParts(ChipError(good + "hbm_sustained_bytes_per_s: " + FactText("5e12")),
              {"chip.yaml:8: hbm_sustained_bytes_per_s: ", "above the peak", "at most the peak"});
  ExpectParts(ChipError(good + "sustained_matrix_flops_per_s:\n  fp64: " + FactText("1e12")),
              {"sustained_matrix_flops_per_s.fp64: needs peak_matrix_flops_per_s.fp64 as well"});
  ExpectParts(ChipError(good + "id: 8xchip\n"), {"chip.yaml:8: id: '8xchip' is not an id", "beginning with a letter"});
  ExpectParts(ChipError(good + "scale_up_fabric: nvlink99\n"),
              {"chip.yaml: scale_up_fabric: unknown fabric 'nvlink99'; known: ", "nvlink4"});
  ExpectParts(ChipError("just text"), {"chip.yaml:1", "must be a map"});
  ExpectParts(ChipError("name: [unclosed"), {"chip.yaml:"});
}

TEST(CatalogueTest, BadDirectories) {
  ExpectParts(LoadError({"data", "/nonexistent/place"}), {"/nonexistent/place: no such data directory or file"});
  const TemporaryFolder empty;
  ExpectParts(LoadError({"data", empty.path()}), {"holds no hardware: expected accelerators/*.yaml"});
  const TemporaryFolder twice;
  twice.Write("accelerators/a.yaml", MinimalChip("amd") + "id: same\n");
  twice.Write("accelerators/b.yaml", MinimalChip("amd") + "id: same\n");
  ExpectParts(LoadError({"data", twice.path()}), {"b.yaml: id: 'same' is already the id of ", "a.yaml"});
}

TEST(CatalogueTest, BadFabrics) {
  const auto error = [](const std::string& text) {
    const TemporaryFolder folder;
    folder.Write("fabrics/f.yaml", text);
    return LoadError({"data", folder.path()});
  };
  const std::string peak = "device_peak_bytes_per_s: " + FactText("1e11") + "\n";
  ExpectParts(error("topology: ring\n" + peak),
              {"f.yaml:1: topology: must be one of switch, full_mesh, pcie, got 'ring'"});
  ExpectParts(error("topology: switch\n"), {"f.yaml", "device_peak_bytes_per_s: is required"});
  ExpectParts(error("topology: switch\n" + peak + "sustained_fraction: " + FactText("1.2")),
              {"f.yaml:3: sustained_fraction.value: must be between", "got '1.2'"});
  ExpectParts(error("topology: switch\n" + peak + "max_devices: " + FactText("2.5")),
              {"f.yaml:3: max_devices", "whole"});
}

TEST(CatalogueTest, FabricDefaults) {
  const TemporaryFolder folder;
  folder.Write("fabrics/f.yaml", "topology: full_mesh\ndevice_peak_bytes_per_s: " + FactText("7e11") + "\n");
  const Catalogue catalogue = MustLoad({"data", folder.path()});
  const Fabric& fabric = catalogue.fabrics().at("f");
  EXPECT_EQ(fabric.max_devices, 8);
  EXPECT_DOUBLE_EQ(fabric.link_peak.value, 1e11);  // 7e11 over 7 links
  EXPECT_EQ(fabric.facts.at("sustained_fraction").kind, FactKind::kAssumed);
  EXPECT_FALSE(fabric.in_network_reduction);
}

TEST(CatalogueTest, UnknownIdsListTheKnownOnes) {
  const Catalogue catalogue = MustLoad({"data"});
  ExpectParts(catalogue.FindAccelerator("mi350").error().message,
              {"unknown accelerator 'mi350'; known: a100", "did you mean 'mi350x'?"});
  EXPECT_EQ(catalogue.FindAccelerator("mi350").error().code, ErrorCode::kNotFound);
  ExpectParts(catalogue.FindFabric("nvlink9").error().message, {"unknown fabric 'nvlink9'; known: cpu_node"});
}

}  // namespace
}  // namespace portolan
