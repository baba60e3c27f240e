#include "porting/compile_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "porting/compile_flags.h"
#include "porting/process.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Process, OutputCodeAndTimeLimit) {
  const ProcessResult said = RunProcess({"sh", "-c", "echo out; echo err >&2; exit 3"}, std::chrono::seconds(20));
  EXPECT_EQ(said.end, ProcessResult::End::kExited);
  EXPECT_EQ(said.code, 3);
  EXPECT_EQ(said.output, "out\nerr\n");
  // Both the shell and what it started are gone; a closed output does not end the wait early.
  const ProcessResult slow = RunProcess({"sh", "-c", "sleep 100 & sleep 100"}, std::chrono::milliseconds(200));
  EXPECT_EQ(slow.end, ProcessResult::End::kTimedOut);
  EXPECT_LT(slow.seconds, 20.0);
  const ProcessResult silent =
      RunProcess({"sh", "-c", "exec >/dev/null 2>&1; sleep 100"}, std::chrono::milliseconds(200));
  EXPECT_EQ(silent.end, ProcessResult::End::kTimedOut);
  EXPECT_FALSE(RunProcess({"/nonexistent/program"}, std::chrono::seconds(5)).Succeeded());
  EXPECT_EQ(FindProgram("/nonexistent/program"), "");
  EXPECT_NE(FindProgram("sh"), "");
}

TEST(CompileFlags, AreReadFromBuildFiles) {
  EXPECT_EQ(ShellWords("a 'b c' \"d\\\"e\" f\\ g\\\n h"), (std::vector<std::string>{"a", "b c", "d\"e", "f g", "h"}));
  const CompileFlags flags = FlagsAmong(
      {"nvcc", "-O2", "-DN=4", "-D", "M", "-I../inc", "-I$(CUDA)", "-dc", "--std=c++14", "-Dependency", "-D=", "x.cu"},
      "/p/src");
  EXPECT_EQ(flags.flags, (std::vector<std::string>{"-DN=4", "-DM", "-I/p/inc", "-std=c++14", "-Dependency"}));
  EXPECT_TRUE(flags.relocatable);
}

TEST(CompileFlags, FoldersOfTheProjectsOwnHeadersAreFound) {
  const TemporaryFolder folder;
  ASSERT_NE(folder.path(), "");
  Write(folder.path() + "/src/a.cu", "#include \"lib/x.h\"\n#include <y.h>\n");
  Write(folder.path() + "/include/lib/x.h", "");
  Write(folder.path() + "/third/y.h", "");
  Write(folder.path() + "/CMakeLists.txt",
        "set(CMAKE_CUDA_STANDARD 14)\nadd_definitions(-DFROM_CMAKE) # "
        "-DNOT\ninclude_directories(${CMAKE_SOURCE_DIR}/x)\n");
  const ProjectFlags flags(folder.path(), {"src/a.cu"}, {"src/a.cu", "include/lib/x.h", "third/y.h"});
  EXPECT_EQ(flags.Of("src/a.cu").flags,
            (std::vector<std::string>{"-I" + folder.path() + "/x", "-DFROM_CMAKE", "-std=c++14",
                                      "-I" + folder.path() + "/include", "-I" + folder.path() + "/third"}));
  Write(folder.path() + "/compile_commands.json",
        R"([{"file": "/elsewhere/src/a.cu", "directory": "/d", "command": "nvcc -DDB -Irel -c a.cu"}, 7])");
  EXPECT_EQ(flags.Of("src/a.cu").flags[0], "-DDB");
  EXPECT_EQ(flags.Of("src/a.cu").flags[1], "-I/d/rel");
}

TEST(Diagnostics, KeepTheirPlaces) {
  const std::vector<Finding> findings = FindDiagnostics(
      "/r/a.cu:3:7: error: use of undeclared identifier 'x'\n/o/b.h:1:2: fatal error: 'c.h' file not found\n"
      "a.cu:2:1: note: here\nerror: <unknown>:0:0: local memory (70000) exceeds limit (65536) in function 'k'\n"
      "error: local memory (70000) exceeds limit (65536) in function 'k'\n:-1:x: error: odd\n",
      "/r");
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(findings[0].file, "a.cu");
  EXPECT_EQ(findings[0].position.line, 3);
  EXPECT_EQ(findings[0].position.column, 7);
  EXPECT_EQ(findings[0].message, "use of undeclared identifier 'x'");
  EXPECT_EQ(findings[1].file, "/o/b.h");
  EXPECT_EQ(findings[3].kind, "shared-memory");
  EXPECT_EQ(findings[4].file, "");
}

KernelResources Kernel(int vector, int scalar, int64_t shared, int block) {
  KernelResources kernel;
  kernel.vector_registers = vector;
  kernel.scalar_registers = scalar;
  kernel.shared_bytes = shared;
  kernel.largest_block = block;
  return kernel;
}

// MI300X and MI350X: 512 registers a lane and SIMD, 64 and 160 KiB of LDS.
TEST(Occupancy, FollowsTheScarcestResource) {
  const PortTarget mi300 = TestTarget("gfx942");
  const PortTarget mi350 = TestTarget("gfx950");
  EXPECT_EQ(OccupancyOf(Kernel(64, 32, 0, 256), 0, mi300).waves, 8);  // 512 / 64
  EXPECT_EQ(OccupancyOf(Kernel(65, 32, 0, 256), 0, mi300).waves, 7);  // 512 / 72
  EXPECT_EQ(OccupancyOf(Kernel(512, 32, 0, 256), 0, mi300).waves, 1);
  EXPECT_EQ(OccupancyOf(Kernel(8, 102, 0, 256), 0, mi300).waves, 7);  // 800 / 102
  // The GEMM of the notes: 162 registers, 36864 bytes, 256 threads. 64 KiB hold one block of 4 waves, so 1 a SIMD;
  // 160 KiB hold four, so that 512 / 168 = 3 by registers is what counts.
  EXPECT_EQ(OccupancyOf(Kernel(162, 24, 36864, 256), 0, mi300).waves, 1);
  EXPECT_STREQ(OccupancyOf(Kernel(162, 24, 36864, 256), 0, mi300).limit, "shared memory");
  EXPECT_EQ(OccupancyOf(Kernel(162, 24, 36864, 256), 0, mi350).waves, 3);
  EXPECT_STREQ(OccupancyOf(Kernel(162, 24, 36864, 256), 0, mi350).limit, "vector registers");
  EXPECT_EQ(OccupancyOf(Kernel(8, 8, 65537, 256), 0, mi300).waves, 0);  // not even one block
  // Law: more of anything never makes more waves; more threads a block never fewer.
  for (int registers = 1; registers < 512; registers += 13) {
    const int waves = OccupancyOf(Kernel(registers, 32, 4096, 256), 0, mi300).waves;
    EXPECT_GE(waves, OccupancyOf(Kernel(registers + 13, 32, 4096, 256), 0, mi300).waves);
    EXPECT_GE(waves, OccupancyOf(Kernel(registers, 32, 8192, 256), 0, mi300).waves);
    EXPECT_LE(waves, OccupancyOf(Kernel(registers, 32, 4096, 512), 0, mi300).waves);
  }
}

class CompilePortTest : public testing::Test {
 protected:
  void SetUp() override {
    if (FindProgram("clang++-22").empty()) GTEST_SKIP() << "no clang++-22: the check by compiling is not tested";
    ASSERT_NE(folder_.path(), "");
  }

  CompileReport Check(const std::string& text, const std::string& gfx) {
    Write(folder_.path() + "/in/k.cu", text);
    const PortTarget target = TestTarget(gfx);
    const auto port = Port({folder_.path() + "/in", folder_.path() + "/out", ""}, target);
    EXPECT_TRUE(port);
    CompileOptions options;
    options.root = folder_.path() + "/out";
    options.compiler = "clang++-22";
    auto report = CompilePort(*port, options, target);
    EXPECT_TRUE(report);
    return *report;
  }

  TemporaryFolder folder_;
};

constexpr const char* kProgram = R"(#include <cuda_runtime.h>
#include <cstdio>
__global__ void scale(float *p, int n) {
  __shared__ float tile[12288];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = __shfl_xor_sync(0xffffffff, p[i], 1) * sinf(p[0]);
  __syncthreads();
  if (i < n) atomicAdd(&p[i], tile[threadIdx.x ^ 1]);
}
int main() {
  float *p;
  cudaMalloc(&p, 4096);
  scale<<<4, 256>>>(p, 1024);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return cudaFree(p);
}
)";

// Compiled with Portolan's own headers alone; the compiler's own remark agrees with our formula.
TEST_F(CompilePortTest, ReadsRegistersAndAgreesWithTheCompiler) {
  const CompileReport report = Check(kProgram, "gfx942");
  ASSERT_EQ(report.units.size(), 1u);
  for (const Finding& finding : report.units[0].findings) ADD_FAILURE() << finding.file << ": " << finding.message;
  ASSERT_EQ(report.units[0].kernels.size(), 1u);
  const CompiledKernel& kernel = report.units[0].kernels[0];
  EXPECT_EQ(kernel.resources.name, "scale");
  EXPECT_GT(kernel.resources.vector_registers, 0);
  EXPECT_EQ(kernel.resources.shared_bytes, 49152);
  EXPECT_EQ(kernel.resources.largest_block, 256);  // by the rule missing-launch-bounds
  EXPECT_EQ(kernel.launched_threads, 256);
  EXPECT_EQ(kernel.occupancy.waves, 1);  // one block of 4 waves on 4 SIMDs
  EXPECT_EQ(kernel.compiler_waves, OccupancyOf(kernel.resources, 0, TestTarget("gfx942")).waves);
}

TEST_F(CompilePortTest, FindsTooMuchSharedMemoryOnOneChipOnly) {
  std::string text = kProgram;
  text.replace(text.find("12288"), 5, "20000");  // 80000 bytes
  const CompileReport small = Check(text, "gfx942");
  ASSERT_EQ(small.units[0].findings.size(), 1u);
  EXPECT_EQ(small.units[0].findings[0].kind, "shared-memory");
  EXPECT_EQ(Check(text, "gfx950").Count(CompiledUnit::End::kCompiled), 1);
}

TEST_F(CompilePortTest, FindsALaunchBeyondTheBoundAndAnUnknownName) {
  std::string text = kProgram;
  text.replace(text.find("void scale"), 10, "void __launch_bounds__(128) scale");
  const CompileReport bound = Check(text, "gfx950");
  ASSERT_EQ(bound.units[0].findings.size(), 1u);
  EXPECT_EQ(bound.units[0].findings[0].kind, "launch-bounds");
  EXPECT_EQ(bound.units[0].findings[0].position.line, 3);
  text.replace(text.find("sinf"), 4, "nosf");
  const CompileReport unknown = Check(text, "gfx950");
  EXPECT_EQ(unknown.Count(CompiledUnit::End::kFailed), 1);
  ASSERT_FALSE(unknown.units[0].findings.empty());
  EXPECT_EQ(unknown.units[0].findings[0].kind, "compile-error");
}

TEST(CompilePort, AnAbsentCompilerIsSaidInOneLine) {
  CompileOptions options;
  options.root = ".";
  options.compiler = "/nonexistent/clang++";
  const auto report = CompilePort(PortReport(), options, TestTarget());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->absent, "'/nonexistent/clang++' is not a program that can be run");
}

}  // namespace
}  // namespace portolan
