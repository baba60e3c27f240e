// Shim mode on folders: what is written, what is not touched, and the check of a shim that is there.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "porting/port.h"
#include "porting/shim.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

class ShimProject : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("portolan_shim_" + std::to_string(::getpid()) + "_" +
                                         testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "in");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  Result<PortReport> Run(PortMode mode, const std::string& output = "out", const std::string& input = "in") {
    PortOptions options;
    options.input = (root_ / input).string();
    options.output = (root_ / output).string();
    options.mode = mode;
    return Port(options, TestTarget());
  }

  fs::path root_;
};

TEST_F(ShimProject, WritesTheShimAndNothingElse) {
  const std::string source = "#include <cuda_runtime.h>\r\nint main() { cudaFree(0); }\r\n";
  Write("in/main.cu", source);
  Write("in/Makefile", "CC = nvcc\n");
  const auto report = Run(PortMode::kShim);
  ASSERT_TRUE(report);
  EXPECT_EQ(Read("in/main.cu"), source);
  EXPECT_EQ(Read("in/Makefile"), "CC = nvcc\n");
  EXPECT_FALSE(fs::exists(root_ / "out/main.cu"));
  EXPECT_NE(Read("out/portolan_shim/portolan_shim.h").find("#define cudaFree hipFree\n"), std::string::npos);
  EXPECT_NE(Read("out/portolan_shim/cuda_runtime.h").find("portolan_shim.h"), std::string::npos);
  EXPECT_NE(Read("out/portolan_shim/portolan_shim.mk").find("--offload-arch="), std::string::npos);
  EXPECT_EQ(report->files_read, 1);
}

// Through the -I of a Makefile, and from there through a path of its own.
TEST_F(ShimProject, ServesHeadersOutsideTheProject) {
  Write("in/main.cu", "#include \"shared.h\"\nint main() { f(); }\n");
  Write("in/Makefile", "CFLAGS = -O2 -I../other -I../absent\n");
  Write("other/shared.h", "#include \"../third/more.h\"\ninline void f() { cudaFree(0); g(); }\n");
  Write("third/more.h", "#include <cuda_runtime.h>\ninline void g() { cudaDeviceReset(); }\n");
  const auto report = Run(PortMode::kShim);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->files_read, 3);
  const std::string shim = Read("out/portolan_shim/portolan_shim.h");
  EXPECT_NE(shim.find("#define cudaFree hipFree\n"), std::string::npos);
  EXPECT_NE(shim.find("#define cudaDeviceReset hipDeviceReset\n"), std::string::npos);
}

TEST_F(ShimProject, SecondRunChangesNothing) {
  Write("in/a.cu", "#include <cub/cub.cuh>\n__device__ int f(int v) { return __shfl_sync(~0u, v, warpSize); }\n");
  ASSERT_TRUE(Run(PortMode::kShim, "in"));  // in place: the shim lies among the sources
  const std::string first = Read("in/portolan_shim/portolan_shim.h");
  const auto again = Run(PortMode::kShim, "in");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->shim_changed.empty());
  EXPECT_EQ(again->files_read, 1);
  EXPECT_EQ(Read("in/portolan_shim/portolan_shim.h"), first);
}

TEST_F(ShimProject, TakesAwayWhatIsNoLongerNeededAndLeavesWhatIsNotItsOwn) {
  Write("in/a.cu", "#include <cublas_v2.h>\nint main() { cudaFree(0); }\n");
  ASSERT_TRUE(Run(PortMode::kShim));
  EXPECT_TRUE(fs::exists(root_ / "out/portolan_shim/cublas_v2.h"));
  Write("out/portolan_shim/own.h", "// mine\n");
  Write("in/a.cu", "int main() { cudaFree(0); }\n");
  ASSERT_TRUE(Run(PortMode::kShim));
  EXPECT_FALSE(fs::exists(root_ / "out/portolan_shim/cublas_v2.h"));
  EXPECT_TRUE(fs::exists(root_ / "out/portolan_shim/own.h"));
}

TEST_F(ShimProject, CheckFailsOnceMoreIsUsed) {
  Write("in/a.cu", "int main() { cudaFree(0); }\n");
  ASSERT_TRUE(Run(PortMode::kShim));
  auto check = Run(PortMode::kCheckShim);
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->shim_lacks.empty());
  Write("in/b.cu", "#include <nccl.h>\nint g() { return cudaDeviceReset(); }\n");
  const std::string before = Read("out/portolan_shim/portolan_shim.h");
  check = Run(PortMode::kCheckShim);
  ASSERT_TRUE(check);
  ASSERT_EQ(check->shim_lacks.size(), 2u);
  EXPECT_EQ(check->shim_lacks[0], "b.cu:1:10: the shim has no header 'nccl.h'");
  EXPECT_EQ(check->shim_lacks[1], "b.cu:2:18: the shim has no 'cudaDeviceReset'");
  EXPECT_EQ(Read("out/portolan_shim/portolan_shim.h"), before);
  ASSERT_TRUE(Run(PortMode::kShim));
  check = Run(PortMode::kCheckShim);
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->shim_lacks.empty());
}

TEST_F(ShimProject, CheckWithoutAShimIsAnError) {
  Write("in/a.cu", "int main() { cudaFree(0); }\n");
  EXPECT_FALSE(Run(PortMode::kCheckShim));
}

TEST_F(ShimProject, NothingOfCudaWritesNothing) {
  Write("in/a.cpp", "int main() { return 0; }\n");
  const auto report = Run(PortMode::kShim);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->shim_files.empty());
  EXPECT_FALSE(fs::exists(root_ / "out"));
}

TEST_F(ShimProject, OddFiles) {
  Write("in/bom.cu", "\xEF\xBB\xBF#include <cuda_runtime.h>\r\nvoid f() { cudaFree(0); }\r\n");
  Write("in/latin.cu", "// \xE9t\xE9\nvoid g() { cudaMalloc(0, 1); }\n");
  Write("in/binary.h", std::string("\0cudaHostAlloc", 14));
  fs::create_directory_symlink(root_ / "in", root_ / "in/loop");
  fs::create_symlink(root_ / "nowhere.cu", root_ / "in/broken.cu");
  const auto report = Run(PortMode::kShim);
  ASSERT_TRUE(report);
  const std::string shim = Read("out/portolan_shim/portolan_shim.h");
  EXPECT_NE(shim.find("#define cudaFree hipFree\n"), std::string::npos);
  EXPECT_NE(shim.find("#define cudaMalloc hipMalloc\n"), std::string::npos);
  EXPECT_EQ(shim.find("cudaHostAlloc"), std::string::npos);
  EXPECT_EQ(report->skipped.size(), 3u);
}

TEST_F(ShimProject, MissingInputAndFileAsOutput) {
  EXPECT_FALSE(Run(PortMode::kShim, "out", "absent"));
  Write("in/a.cu", "void f() { cudaFree(0); }\n");
  Write("taken", "a file\n");
  EXPECT_FALSE(Run(PortMode::kShim, "taken"));
}

TEST_F(ShimProject, OneFile) {
  Write("in/a.cu", "void f() { cudaFree(0); }\n");
  ASSERT_TRUE(Run(PortMode::kShim, "out", "in/a.cu"));
  EXPECT_TRUE(fs::exists(root_ / "out/portolan_shim/portolan_shim.h"));
}

}  // namespace
}  // namespace portolan
