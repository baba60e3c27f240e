#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "porting/compat.h"
#include "porting/port.h"
#include "porting/report.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

class PortProject : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("portolan_port_" + std::to_string(::getpid()) + "_" +
                                         testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "in");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / "in" / name).parent_path());
    std::ofstream(root_ / "in" / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  Result<PortReport> Run(const std::string& input, const std::string& output) {
    PortOptions options;
    options.input = (root_ / input).string();
    options.output = output.empty() ? "" : (root_ / output).string();
    return Port(options, TestTarget());
  }

  fs::path root_;
};

TEST_F(PortProject, PortsAProject) {
  Write("main.cu", "#include \"src/k.cuh\"\nint main() { cudaFree(0); }\n");
  Write("src/k.cuh", "__device__ int f(int v) { return __shfl_xor_sync(~0u, v, 1); }\n");
  Write("Makefile", "CC = nvcc\n");
  Write("data.bin", std::string("\0cudaFree", 9));
  const auto report = Run("in", "out");
  ASSERT_TRUE(report);
  EXPECT_EQ(Read("out/main.cu"), "#include <hip/hip_runtime.h>\n#include \"src/k.cuh\"\nint main() { hipFree(0); }\n");
  EXPECT_EQ(Read("out/src/k.cuh"),
            "#include \"../portolan_hip.h\"\n"
            "__device__ int f(int v) { return portolan::shfl_xor_sync(~0u, v, 1); }\n");
  EXPECT_EQ(Read("out/Makefile"), "CC = hipcc\n");
  EXPECT_EQ(Read("out/data.bin"), std::string("\0cudaFree", 9));
  EXPECT_NE(Read("out/portolan_hip.h").find("shfl_xor_sync"), std::string::npos);
  EXPECT_EQ(report->files_changed, 3);

  // The port of a port is the port.
  ASSERT_TRUE(Run("out", "again"));
  for (const char* name : {"main.cu", "src/k.cuh", "Makefile", "portolan_hip.h"}) {
    EXPECT_EQ(Read(std::string("again/") + name), Read(std::string("out/") + name)) << name;
  }
}

TEST_F(PortProject, PortsInPlaceAndKeepsTheHeader) {
  Write("a.cu", "__device__ void f() { __syncwarp(); }\n");
  ASSERT_TRUE(Run("in", "in"));
  const std::string header = Read("in/portolan_hip.h");
  EXPECT_NE(header.find("syncwarp"), std::string::npos);
  const auto second = Run("in", "in");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->files_changed, 0);
  EXPECT_EQ(Read("in/portolan_hip.h"), header);
}

TEST_F(PortProject, PortsOneFile) {
  Write("a.cu", "cudaFree(p);\n");
  ASSERT_TRUE(Run("in/a.cu", "b.hip"));
  EXPECT_EQ(Read("b.hip"), "#include <hip/hip_runtime.h>\nhipFree(p);\n");
  fs::create_directories(root_ / "folder");
  ASSERT_TRUE(Run("in/a.cu", "folder"));
  EXPECT_EQ(Read("folder/a.cu"), Read("b.hip"));
}

TEST_F(PortProject, AuditWritesNothing) {
  Write("a.cu", "__device__ void f() { __syncwarp(); }\n");
  const auto report = Run("in", "");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings[0].file, "a.cu");
  EXPECT_EQ(report->findings[0].position.line, 1);
  EXPECT_EQ(report->findings[0].position.column, 23);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
}

TEST_F(PortProject, KeepsEveryOtherByte) {
  // A byte order mark, CR LF, Latin-1, no line end at the end.
  Write("a.cu", "\xEF\xBB\xBF// caf\xE9\r\n#include <cuda_runtime.h>\r\nint x = cudaSuccess;\t// \xFF");
  ASSERT_TRUE(Run("in", "out"));
  EXPECT_EQ(Read("out/a.cu"), "\xEF\xBB\xBF// caf\xE9\r\n#include <hip/hip_runtime.h>\r\nint x = hipSuccess;\t// \xFF");
  Write("b.cu",
        "\xEF\xBB\xBF"
        "cudaFree(p);\r\n");
  ASSERT_TRUE(Run("in", "out"));
  EXPECT_EQ(Read("out/b.cu"), "\xEF\xBB\xBF#include <hip/hip_runtime.h>\r\nhipFree(p);\r\n");
}

TEST_F(PortProject, GetsOverWhatItCannotRead) {
  Write("a.cu", "cudaFree(p);\n");
  Write("binary.cu", std::string("cuda\0Free", 9));
  fs::create_directory_symlink(root_ / "in", root_ / "in" / "loop");
  fs::create_symlink(root_ / "nowhere", root_ / "in" / "broken.cu");
  const auto report = Run("in", "out");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->files_read, 1);
  EXPECT_EQ(report->skipped.size(), 3u);
  EXPECT_EQ(Read("out/binary.cu"), std::string("cuda\0Free", 9));
}

TEST_F(PortProject, TellsOfUnreadableFiles) {
  Write("a.cu", "cudaFree(p);\n");
  fs::permissions(root_ / "in" / "a.cu", fs::perms::none);
  if (::access((root_ / "in" / "a.cu").c_str(), R_OK) == 0) GTEST_SKIP() << "this user reads every file";
  const auto report = Run("in", "out");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->skipped.size(), 1u);
  EXPECT_NE(report->skipped[0].find("cannot be read"), std::string::npos);
}

TEST_F(PortProject, RefusesImpossibleOutputs) {
  Write("a.cu", "cudaFree(p);\n");
  EXPECT_FALSE(Run("nothing", "out"));
  EXPECT_FALSE(Run("in", "in/out"));
  std::ofstream(root_ / "file") << "x";
  EXPECT_FALSE(Run("in", "file"));
}

TEST_F(PortProject, TakesALargeHeader) {
  std::string text = "#pragma once\n";
  while (text.size() < 10'000'000)
    text += "static inline int f" + std::to_string(text.size()) + "(int a) { return a << 1; }\n";
  text += "cudaError_t last();\n";
  Write("large.h", text);
  const auto report = Run("in", "out");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->files_changed, 1);
  EXPECT_EQ(Read("out/large.h").size(), text.size() - 1);  // cuda -> hip
}

TEST_F(PortProject, UnderstandsLaunchesInMacros) {
  const std::string text =
      "#define LAUNCH(k, n, ...) k<<<(n + 255) / 256, 256>>>(__VA_ARGS__); if (cudaGetLastError()) abort()\n"
      "void f() {\n  LAUNCH((ns::kernel<float, 4>), n, a, b);\n  ns::k<std::pair<int, int>><<<dim3(f(1, 2)), {1, "
      "2}>>>(x);\n"
      "  k<<<1,\n#ifdef X\n    2\n#else\n    3\n#endif\n  >>>();\n}\n";
  Write("a.cuh", text);
  ASSERT_TRUE(Run("in", "out"));
  std::string expected = text;
  expected.replace(expected.find("cudaGet"), 4, "hip");
  EXPECT_EQ(Read("out/a.cuh"), expected);
}

TEST_F(PortProject, ReportsAsJsonAndSarif) {
  Write("a.cu", "__device__ void f() { __syncwarp(); __nanosleep(3); }\n");
  const auto report = Run("in", "");
  ASSERT_TRUE(report);
  const auto json = ReportAsJson(*report, TestTarget());
  EXPECT_EQ(json["levels"]["error"], 2);
  EXPECT_EQ(json["kinds"]["warp-sync"], 1);
  EXPECT_EQ(json["target"]["wave_size"], 64);
  const auto sarif = ReportAsSarif(*report, "1.0");
  EXPECT_EQ(sarif["version"], "2.1.0");
  const auto& run = sarif["runs"][0];
  EXPECT_EQ(run["results"].size(), 2u);
  EXPECT_EQ(run["results"][0]["ruleId"], "warp-sync");
  EXPECT_EQ(run["results"][0]["level"], "error");
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 1);
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 2u);
}

}  // namespace
}  // namespace portolan
