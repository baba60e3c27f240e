#include "porting/shim.h"

#include <gtest/gtest.h>

#include "porting/test_target.h"

namespace portolan {
namespace {

struct Made {
  Shim shim;
  std::vector<ShimNeed> needs;
  std::vector<Finding> findings;
  std::map<std::string, std::string> files;
};

Made Make(const std::string& text, const std::string& rocm = "6.3") {
  const SourceFile source("a.cu", text);
  ProjectFacts facts;
  for (int pass = 0; pass < 2; ++pass) CollectFacts(source, &facts);
  PortTarget target = TestTarget();
  if (rocm == "7.0") target.rocm = 700;
  const HipDeclarations none;
  Made made;
  const RuleInput input{source, facts, target, none};
  CollectShim(input, &made.shim, &made.needs);
  made.findings = ShimFindings(input, &made.shim, &made.needs);
  made.files = ShimFiles(made.shim, target, "..");
  return made;
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Shim, HasWhatIsUsedAndNoMore) {
  const Made made = Make("#include <cuda_runtime.h>\n#include <cuda_fp16.h>\nvoid f(void* p) { cudaFree(p); }\n");
  EXPECT_EQ(made.shim.aliases, (std::map<std::string, std::string, std::less<>>{{"cudaFree", "hipFree"}}));
  ASSERT_EQ(made.files.count("cuda_runtime.h"), 1u);
  ASSERT_EQ(made.files.count("cuda_fp16.h"), 1u);
  EXPECT_EQ(made.files.count("cublas_v2.h"), 0u);
  EXPECT_TRUE(Has(made.files.at("cuda_fp16.h"), "#include <hip/hip_fp16.h>"));
  EXPECT_TRUE(Has(made.files.at("portolan_shim.h"), "#define cudaFree hipFree\n"));
  EXPECT_FALSE(Has(made.files.at("portolan_shim.h"), "shfl"));
}

TEST(Shim, NothingOfCudaNeedsNoShim) {
  EXPECT_TRUE(Make("#include <vector>\nint main() { return 0; }\n").files.empty());
  EXPECT_TRUE(Make("").files.empty());
}

TEST(Shim, LeavesWhatTheProjectDefines) {
  const Made made =
      Make("void cudaCheck(int);\n#define cudaTry(x) x\nvoid cudaCheck(int e) { cudaTry(e); cudaCheck(e); }\n");
  EXPECT_TRUE(made.shim.aliases.empty());
}

TEST(Shim, LeavesMembersAndDeadCode) {
  const Made made = Make("#if 0\nint a = cudaFree;\n#endif\nint f(P p) { return p.warpSize + p.cudaThing; }\n");
  EXPECT_TRUE(made.files.empty());
}

TEST(Shim, WarpBuiltinsBecomeThoseOf32Lanes) {
  const Made made =
      Make("__device__ int f(int v) { return __shfl_xor_sync(~0u, v, 1) + __popc(__ballot_sync(~0u, v)); }\n");
  EXPECT_EQ(made.shim.aliases.at("__shfl_xor_sync"), "portolan::shfl_xor_sync");
  EXPECT_EQ(made.shim.aliases.at("__ballot_sync"), "portolan::ballot_sync");
  EXPECT_EQ(made.shim.aliases.count("__popc"), 0u);
  const std::string& text = made.files.at("portolan_shim.h");
  // The function stands before the macro that hides its namesake.
  EXPECT_LT(text.find("inline T shfl_xor_sync"), text.find("#define __shfl_xor_sync"));
  // ROCm's own headers do not see the macro.
  EXPECT_TRUE(Has(made.files.at("portolan/off.h"), "#undef __shfl_xor_sync"));
  for (const Finding& finding : made.findings) EXPECT_FALSE(IsLeft(finding)) << finding.message;
}

TEST(Shim, WarpSizeIsAConstantAndAMemberStaysOne) {
  const Made made =
      Make("__global__ void k() { __shared__ int s[warpSize]; }\nint f(cudaDeviceProp p) { return p.warpSize; }\n");
  const std::string& text = made.files.at("portolan_shim.h");
  EXPECT_TRUE(Has(text, "static constexpr int warpSize = 32;"));
  EXPECT_FALSE(Has(text, "#define warpSize 32"));
  EXPECT_LT(text.find("hip/hip_runtime_api.h"), text.find("#define warpSize portolan_hip_warpSize"));
}

TEST(Shim, SecondLaunchBoundIsConverted) {
  const Made one = Make("__global__ void __launch_bounds__(256) k() {}\n");
  EXPECT_EQ(one.shim.macros.count("__launch_bounds__"), 0u);
  const Made two = Make("__global__ void __launch_bounds__(256, 2) k() {}\n");
  EXPECT_EQ(two.shim.macros.count("__launch_bounds__"), 1u);
  EXPECT_TRUE(Has(two.files.at("portolan_shim.h"), "amdgpu_waves_per_eu(PORTOLAN_WAVES(threads, blocks))"));
  for (const Finding& finding : two.findings) EXPECT_FALSE(IsLeft(finding)) << finding.action;
}

TEST(Shim, WhatNoHeaderCanSayIsCompiledFromACopy) {
  const std::string source =
      "__device__ int f(int v) {\n  asm(\"brev.b32 %0, %1;\" : \"=r\"(v) : \"r\"(v));\n  return cudaSuccess;\n}\n";
  const Made made = Make(source);
  ASSERT_EQ(made.findings.size(), 1u);
  EXPECT_FALSE(IsLeft(made.findings[0])) << made.findings[0].action;
  ASSERT_EQ(made.files.count("copies/a.cu"), 1u);
  const std::string& copy = made.files.at("copies/a.cu");
  EXPECT_TRUE(Has(copy, "__brev(v)")) << copy;
  EXPECT_TRUE(Has(copy, "\n#line 1 \"a.cu\"\n__device__ int f"));
  EXPECT_TRUE(Has(copy, "return cudaSuccess;"));  // names are the header's affair
  EXPECT_TRUE(Has(made.files.at("overlay.yaml"), "\"name\": \"../a.cu\""));
  EXPECT_TRUE(Has(made.files.at("portolan_shim.mk"), "-ivfsoverlay"));
  // A source that changes leaves its copy behind.
  const Made now = Make("\n" + source);
  const auto lacks = ShimLacks(ReadShim(made.files), now.shim, now.files, now.needs, now.findings);
  ASSERT_EQ(lacks.size(), 1u);
  EXPECT_EQ(lacks[0], "a.cu:1:1: the shim's copy of it is out of date");
}

TEST(Shim, UnknownPtxIsLeftByName) {
  const Made made =
      Make("__device__ int f(int v) {\n  asm(\"frob.b32 %0, %1;\" : \"=r\"(v) : \"r\"(v));\n  return v;\n}\n");
  ASSERT_EQ(made.findings.size(), 1u);
  EXPECT_TRUE(IsLeft(made.findings[0]));
  EXPECT_EQ(made.findings[0].position.line, 2);
  EXPECT_EQ(made.shim.left.at("inline-ptx in a.cu"), 1);
  EXPECT_TRUE(made.shim.copies.empty());
}

TEST(Shim, OneThingHasOneFirstPlace) {
  const Made made = Make("void f() {\n  cudaFree(0);\n  cudaFree(0);\n}\n");
  ASSERT_EQ(made.needs.size(), 1u);
  EXPECT_EQ(made.needs[0].what, "name cudaFree");
  EXPECT_EQ(made.needs[0].position.line, 2);
}

TEST(Shim, OwnAtomicsBeatHips) {
  const Made made = Make("__device__ float atomicMax(float* a, float v) { return v; }\n");
  const std::string& text = made.files.at("portolan_shim.h");
  EXPECT_TRUE(Has(text, "#define atomicMax portolan_hip_atomicMax"));
  EXPECT_FALSE(Has(text, "portolan_hip_atomicAdd"));
}

TEST(Shim, HeadersThatRocmHasTooGoFirstOnlyWhenNeeded) {
  EXPECT_EQ(Make("#include <thrust/sort.h>\nint f() { return cudaSuccess; }\n").files.count("thrust/sort.h"), 0u);
  const Made hidden = Make("#include <thrust/sort.h>\n__device__ int f(int v) { return __shfl(v, 0); }\n");
  ASSERT_EQ(hidden.files.count("thrust/sort.h"), 1u);
  EXPECT_TRUE(Has(hidden.files.at("thrust/sort.h"), "#include_next <thrust/sort.h>"));
  const Made policy = Make("#include <thrust/sort.h>\nauto p = thrust::cuda::par;\n");
  EXPECT_TRUE(Has(policy.files.at("thrust/sort.h"), "namespace cuda = hip;"));
}

TEST(Shim, ThrustBringsWhatCudasBringsByTheWay) {
  const std::string before = "#include <thrust/sort.h>\nvoid f() { cudaFree(0); }\n";
  const Made made = Make(before + "void g(int* p) { thrust::sort(p, p); thrust::sequence(p, p); }\n");
  ASSERT_EQ(made.files.count("thrust/sort.h"), 1u);
  EXPECT_TRUE(Has(made.files.at("thrust/sort.h"), "#include <thrust/sequence.h>"));
  const auto lacks = ShimLacks(ReadShim(Make(before).files), made.shim, made.files, made.needs, made.findings);
  ASSERT_EQ(lacks.size(), 2u);  // neither the header nor what it brings
  EXPECT_EQ(lacks[1], "a.cu:1:1: the shim's 'thrust/sort.h' does not include 'thrust/sequence.h'");
}

TEST(Shim, CubKeepsWarpsOf32) {
  const Made made = Make("#include <cub/cub.cuh>\nusing W = cub::WarpReduce<int>;\n");
  EXPECT_TRUE(Has(made.files.at("cub/cub.cuh"), "class WarpReduce : public hipcub::WarpReduce<T, kThreads>"));
  EXPECT_FALSE(Has(made.files.at("cub/cub.cuh"), "WarpScan"));
}

TEST(Shim, ReadsBackWhatItWrote) {
  const Made made = Make(
      "#include <cuda_runtime.h>\n#ifdef __CUDACC__\n#endif\n"
      "__device__ int f(int v) { asm(\"foo\" : : \"r\"(v)); return __shfl_sync(~0u, v, warpSize - 1); }\n"
      "void g() { cudaFree(0); }\n");
  const Shim read = ReadShim(made.files);
  EXPECT_EQ(read.aliases, made.shim.aliases);
  EXPECT_EQ(read.left, made.shim.left);
  for (const ShimNeed& need : made.needs) {
    const size_t space = need.what.find(' ');
    if (need.what.substr(0, space) != "macro") continue;
    EXPECT_EQ(read.macros.count(need.what.substr(space + 1)), 1u) << need.what;
  }
  EXPECT_TRUE(ShimLacks(read, made.shim, made.files, made.needs, made.findings).empty());
}

TEST(Shim, SaysWhatIsLacking) {
  const Made old = Make("#include <cuda_runtime.h>\nvoid f() { cudaFree(0); }\n");
  const Made now = Make(
      "#include <cuda_runtime.h>\n#include <cub/cub.cuh>\nvoid f() { cudaFree(0); cudaMalloc(0, 1); }\n"
      "__device__ int g(int v) { asm(\"foo\" : : \"r\"(v)); return __shfl_sync(~0u, v, warpSize - 1); }\n");
  const auto lacks = ShimLacks(ReadShim(old.files), now.shim, now.files, now.needs, now.findings);
  std::string all;
  for (const std::string& line : lacks) all += line + "\n";
  EXPECT_TRUE(Has(all, "a.cu:3:25: the shim has no 'cudaMalloc'")) << all;
  EXPECT_TRUE(Has(all, "a.cu:2:10: the shim has no header 'cub/cub.cuh'")) << all;
  EXPECT_TRUE(Has(all, "the shim lacks the part 'warp_shuffle'")) << all;
  EXPECT_TRUE(Has(all, "the shim does not define 'warpSize'")) << all;
  EXPECT_TRUE(Has(all, "a.cu:4:27: PTX 'foo' in asm() [inline-ptx]")) << all;
  EXPECT_FALSE(Has(all, "cudaFree")) << all;
}

TEST(Shim, ChecksTheFunctionsThatRulesAskFor) {
  const std::string before = "#include <cuda_fp16.h>\n__device__ void f(__half* a) { *a = *a; }\n";
  const Made old = Make(before);
  const Made now = Make(before + "__device__ void g(__half* a, __half b) { atomicAdd(a, b); }\n");
  const auto lacks = ShimLacks(ReadShim(old.files), now.shim, now.files, now.needs, now.findings);
  ASSERT_EQ(lacks.size(), 1u);
  EXPECT_EQ(lacks[0], "a.cu:1:1: the shim lacks the part 'half_atomics'");
}

TEST(Shim, ReadsAnyText) {
  EXPECT_TRUE(ReadShim({}).Empty());
  for (const std::string text : {"", "// Left: ", "// Left: 99999999999999999999 x", "// Names.\n#define a\n#define ",
                                 "// Macro: \r\n#define\n", "\0\xff"}) {
    ReadShim({{"portolan_shim.h", text}});
  }
}

}  // namespace
}  // namespace portolan
