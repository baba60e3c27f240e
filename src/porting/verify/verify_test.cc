// Programs of a page, compiled with the host's compiler and run on 32 and on 64 lanes.
#include "porting/verify/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "porting/process.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

VerifyReport RunProgram(const std::string& kernel, VerifyPort port,
                        const std::string& launch = "k<<<2, 128>>>(in, out);") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/program");
  std::ofstream(folder.path() + "/program/main.cu")
      << kernel << "int main() {\n  const int n = 256;\n  int host[n];\n"
      << "  for (int i = 0; i < n; ++i) host[i] = i % 3 == 0 ? -1 : i;\n"
      << "  int *in, *out;\n  cudaMalloc(&in, n * sizeof(int));\n  cudaMalloc(&out, n * sizeof(int));\n"
      << "  cudaMemcpy(in, host, n * sizeof(int), cudaMemcpyHostToDevice);\n"
      << "  cudaMemset(out, 0, n * sizeof(int));\n  " << launch << "\n"
      << "  cudaMemcpy(host, out, n * sizeof(int), cudaMemcpyDeviceToHost);\n  printf(\"%d\\n\", host[7]);\n}\n";
  VerifyOptions options;
  options.project = folder.path() + "/program";
  options.port = port;
  options.include_dir = PORTOLAN_HOST_GPU_INCLUDE;
  options.library = PORTOLAN_HOST_GPU_LIBRARY;
  options.boost_context = "-lboost_context";
  const Result<VerifyReport> report = Verify(options, TestTarget());
  EXPECT_TRUE(report) << (report ? "" : FormatError(report.error()));
  return report ? *report : VerifyReport();
}

std::string Text(const VerifyReport& report) {
  std::string text = std::string(VerifyVerdictName(report.verdict)) + " " + report.why + "\n";
  for (const std::string& line : report.why_details) text += "  " + line + "\n";
  for (const VerifyFinding& finding : report.findings) {
    text += PlaceText(finding.place) + ": " + finding.kind + ": " + finding.message + "\n";
    for (const std::string& detail : finding.details) text += "  " + detail + "\n";
  }
  return text;
}

// Each warp writes its positive elements next to each other.
constexpr const char* kCompact32 =
    "__global__ void k(const int* in, int* out) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const bool keep = in[i] > 0;\n"
    "  const unsigned mask = __ballot_sync(0xffffffff, keep);\n"
    "  const int place = __popc(mask & ((1u << (threadIdx.x % 32)) - 1));\n"
    "  if (keep) out[i / 32 * 32 + place] = in[i];\n"
    "}\n";

TEST(Verify, BallotKeptIn32BitsFailsWhereOnlyNamesAreChanged) {
  const VerifyReport report = RunProgram(kCompact32, VerifyPort::kRename);
  ASSERT_EQ(report.verdict, VerifyVerdict::kDisagrees) << Text(report);
  ASSERT_FALSE(report.findings.empty());
  const VerifyFinding& finding = report.findings[0];
  EXPECT_EQ(finding.kind, "difference") << Text(report);
  EXPECT_EQ(finding.place, (SourcePlace{"main.cu", 6})) << Text(report);
  // Warp 3 keeps the lanes l with l % 3 != 0, and counts with the votes of warp 2, l % 3 != 2: lane 1 goes to place 1
  // instead of 0, and nobody to place 0. In warp 1 the counts happen to be right.
  EXPECT_NE(Text(report).find("buffer 1 (1024 bytes, 32-bit integers), element 96: 97 expected, 0 seen"),
            std::string::npos)
      << Text(report);
  EXPECT_NE(Text(report).find("original: written at main.cu:6 by block 0, work-item 97 (lane 1 of wave 3)"),
            std::string::npos)
      << Text(report);
  EXPECT_NE(Text(report).find("port: nobody wrote it in this launch"), std::string::npos) << Text(report);
}

TEST(Verify, ThePortOfTheSameAgrees) {
  const VerifyReport report = RunProgram(kCompact32, VerifyPort::kPort);
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_TRUE(report.findings.empty()) << Text(report);
  EXPECT_EQ(report.launches, 1);
  EXPECT_EQ(report.compared_launches, 1);
}

TEST(Verify, BallotIn64BitsAgrees) {
  const VerifyReport report = RunProgram(
      "__global__ void k(const int* in, int* out) {\n"
      "  __shared__ int counts[4];\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;\n"
      "  const bool keep = in[i] > 0;\n"
      "  const unsigned long long mask = __ballot_sync(~0ull, keep);\n"
      "  int place = __popcll(mask & ((1ull << lane) - 1));\n"
      "  if (lane == 0) counts[threadIdx.x / warpSize] = __popcll(mask);\n"
      "  __syncthreads();\n"
      "  for (int w = 0; w < threadIdx.x / warpSize; ++w) place += counts[w];\n"
      "  if (keep) out[blockIdx.x * blockDim.x + place] = in[i];\n"
      "}\n",
      VerifyPort::kRename);
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_TRUE(report.findings.empty()) << Text(report);
}

TEST(Verify, BroadcastOfLane31WithoutAWidthFailsAndWithOneAgrees) {
  const std::string before =
      "__global__ void k(const int* in, int* out) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  out[i] = ";
  const VerifyReport report = RunProgram(before + "__shfl(i, 31);\n}\n", VerifyPort::kRename);
  ASSERT_EQ(report.verdict, VerifyVerdict::kDisagrees) << Text(report);
  EXPECT_EQ(report.findings[0].place, (SourcePlace{"main.cu", 3})) << Text(report);
  EXPECT_NE(Text(report).find("element 32: 63 expected, 31 seen"), std::string::npos) << Text(report);
  const VerifyReport twin = RunProgram(before + "__shfl(i, 31, 32);\n}\n", VerifyPort::kRename);
  EXPECT_EQ(twin.verdict, VerifyVerdict::kAgrees) << Text(twin);
  EXPECT_TRUE(twin.findings.empty()) << Text(twin);
}

// The last argument is left to its default.
TEST(Verify, TheProgramsOwnNameIsTheSameInBoth) {
  const VerifyReport report =
      RunProgram("__global__ void k(const int* in, int* out, int n = 3) { out[threadIdx.x] = in[threadIdx.x] + n; }\n",
                 VerifyPort::kRename, "printf(\"%s\\n\", __FILE__); k<<<1, 64>>>(in, out);");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_TRUE(report.findings.empty()) << Text(report);
}

TEST(Verify, AVoteOfNobodyIsZeroOnBothWidths) {
  const VerifyReport report = RunProgram(
      "__global__ void k(const int* in, int* out) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  out[i] = __popc(__ballot_sync((1u << (threadIdx.x % 32)) - 1, in[i] > 0));\n"  // lanes below: without itself
      "}\n",
      VerifyPort::kPort);
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_NE(Text(report).find("main.cu:3: wave-divergence: "), std::string::npos) << Text(report);
}

// The scan of Fermi's time: the last volatile read of one lane comes before the write of the next.
TEST(Verify, LanesThatCountOnVolatileAccessesStayInStep) {
  const VerifyReport report = RunProgram(
      "__global__ void k(const int* in, int* out) {\n"
      "  __shared__ int s[64];\n"
      "  const int t = threadIdx.x;\n"
      "  volatile int* v = s;\n"
      "  v[t] = 0;\n"
      "  v[t + 32] = t == 31 ? 7 : t;\n"
      "  const int left = v[t + 31];\n"
      "  s[t + 32] = left;\n"
      "  __syncwarp();\n"
      "  out[t] = s[t + 32];\n"
      "}\n",
      VerifyPort::kPort, "k<<<1, 32>>>(in, out);");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_EQ(Text(report).find("wave-race"), std::string::npos) << Text(report);
}

TEST(Verify, TimesThatAProgramPrintsAreTheSame) {
  const VerifyReport report =
      RunProgram(std::string("#include <chrono>\n") + kCompact32, VerifyPort::kPort,
                 "auto before = std::chrono::steady_clock::now(); k<<<2, 128>>>(in, out); cudaDeviceSynchronize(); "
                 "printf(\"%ld\\n\", (long)(std::chrono::steady_clock::now() - before).count());");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
}

// Lanes that pass values with nothing but a fence between, from before __syncwarp; also while one holds a lock.
TEST(Verify, LanesBehindAFenceOfTheBlockAreInStep) {
  const VerifyReport report = RunProgram(
      "__global__ void k(const int* in, int* out) {\n"
      "  __shared__ int s[128];\n"
      "  __shared__ int lock;\n"
      "  const int t = threadIdx.x, lane = t % 32;\n"
      "  if (t == 0) lock = 0;\n"
      "  s[t] = in[t];\n"
      "  __syncthreads();\n"
      "  for (int step = 1; step < 32; step *= 2) {\n"
      "    const int left = lane >= step ? s[t - step] : 0;\n"
      "    __threadfence_block();\n"
      "    s[t] += left;\n"
      "    __threadfence_block();\n"
      "  }\n"
      "  __syncthreads();\n"
      "  for (bool done = false; !done;) {\n"
      "    if (atomicCAS(&lock, 0, 1) == 0) {\n"
      "      out[128] += s[t];\n"
      "      __threadfence_block();\n"
      "      atomicExch(&lock, 0);\n"
      "      done = true;\n"
      "    }\n"
      "  }\n"
      "  out[t] = s[t];\n"
      "}\n",
      VerifyPort::kPort, "k<<<1, 128>>>(in, out);");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
}

TEST(Verify, ProgramsThatOnlyCallALibraryAreComparedByTheirCopies) {
  const VerifyReport report = RunProgram(
      "#include <cub/cub.cuh>\n", VerifyPort::kPort,
      "cub::TransformInputIterator<bool, bool (*)(int), int*> some(in, [](int v) { return v > 0; });\n"
      "size_t bytes = 0; void* scratch = nullptr;\n"
      "cub::DeviceReduce::Sum(nullptr, bytes, some, out, n); cudaMalloc(&scratch, bytes);\n"
      "cub::DeviceReduce::Sum(scratch, bytes, some, out, n);\n"
      "int sum = 0; cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost); if (sum != 170) return 9;\n");  // 256 - 86
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
  EXPECT_EQ(report.launches, 0);
  EXPECT_GE(report.compared_copies, 2);
}

// HIP's vectors have arithmetic, so that a port leaves out the project's own functions of the same form.
TEST(Verify, APortUsesHipsVectorArithmeticAndSymbols) {
  const VerifyReport report = RunProgram(
      "__constant__ int four[4];\n"
      "inline __device__ int4 operator*(int4 a, int4 b) { return make_int4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * "
      "b.w); }\n"
      "__global__ void k(const int* in, int* out) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const int4 v = make_int4(in[i], 1, 2, four[1]);\n"
      "  const int4 w = v * v;\n"
      "  out[i] = w.x + w.w;\n"
      "}\n",
      VerifyPort::kPort,
      "int values[4] = {1, 2, 3, 4}; cudaMemcpyToSymbol(four, values, sizeof values); k<<<2, 128>>>(in, out);");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Text(report);
}

TEST(Verify, FaultsOfTheProgramAreToldWithTheirLines) {
  const VerifyReport report = RunProgram(
      "__global__ void k(const int* in, int* out) {\n"
      "  __shared__ int s[128];\n"
      "  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
      "  s[t] = in[i];\n"
      "  out[i] = s[127 - t];\n"       // 5: no barrier
      "  if (i == 0) out[256] = 1;\n"  // 6: behind the end
      "}\n",
      VerifyPort::kRename);
  EXPECT_EQ(report.verdict, VerifyVerdict::kDisagrees) << Text(report);
  const std::string text = Text(report);
  EXPECT_NE(text.find("main.cu:5: shared-race"), std::string::npos) << text;
  EXPECT_NE(text.find("main.cu:6: out-of-bounds"), std::string::npos) << text;
  EXPECT_NE(text.find("buffer 1 of 1024 bytes, 0 bytes behind its end"), std::string::npos) << text;
}

TEST(Verify, WhatDoesNotCompileCouldNotRun) {
  const VerifyReport report =
      RunProgram("__global__ void k(const int* in, int* out) { nowhere(in); }\n", VerifyPort::kRename);
  EXPECT_EQ(report.verdict, VerifyVerdict::kNotRun);
  EXPECT_NE(report.why.find("the original does not compile"), std::string::npos) << Text(report);
  ASSERT_FALSE(report.why_details.empty());
  EXPECT_NE(report.why_details[0].find("main.cu:1"), std::string::npos) << Text(report);
}

}  // namespace
}  // namespace portolan
