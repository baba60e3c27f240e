#include "porting/verify/host_source.h"

#include <gtest/gtest.h>

#include "porting/test_target.h"

namespace portolan {
namespace {

std::string Translate(const std::string& text) {
  const SourceFile source("k.cu", text);
  SharedArrays arrays;
  CollectSharedArrays(source, &arrays);
  return TranslateForHost(source, arrays, TestTarget());
}

TEST(HostSource, LaunchesBecomeCalls) {
  EXPECT_EQ(Translate("void f() { k<<<g, 256>>>(a, b); }"), "void f() { PORTOLAN_GPU_LAUNCH((k), (g, 256))(a, b); }");
  EXPECT_EQ(Translate("void f() { ns::k<std::pair<int, 3>><<<dim3(1, 2), {4, 1}, n * sizeof(T), s>>>(); }"),
            "void f() { PORTOLAN_GPU_LAUNCH((ns::k<std::pair<int, 3>>), (dim3(1, 2), {4, 1}, n * sizeof(T), s))(); }");
  EXPECT_EQ(Translate("void f() { (*p)<<<1, 1>>>(); table[i]<<<1, 1>>>(); }"),
            "void f() { PORTOLAN_GPU_LAUNCH(((*p)), (1, 1))(); PORTOLAN_GPU_LAUNCH((table[i]), (1, 1))(); }");
  EXPECT_EQ(Translate("#define RUN(K, ...) K##_kernel<<<1, 64>>>(__VA_ARGS__)\n"),
            "#define RUN(K, ...) PORTOLAN_GPU_LAUNCH((K##_kernel), (1, 64))(__VA_ARGS__)\n");
  EXPECT_EQ(Translate("bool f() { return (a << 3) < b; }"), "bool f() { return (a << 3) < b; }");
}

TEST(HostSource, SharedVariablesBecomeReferences) {
  EXPECT_EQ(Translate("__global__ void k() { __shared__ float a[32][33], b; }"),
            "__global__ void k() { struct portolan_shared_6 {  float a[32][33], b; }; "
            "PORTOLAN_GPU_SHARED(portolan_shared_6, portolan_shared_6_v); auto& a = portolan_shared_6_v.a; "
            "auto& b = portolan_shared_6_v.b; }");
  // Template arguments hold commas, and the words before __shared__ go as well.
  const std::string sorted = Translate(
      "__global__ void k() { static volatile __shared__ typename cub::BlockReduce<float, 4>::TempStorage t; }");
  EXPECT_NE(sorted.find("volatile  typename cub::BlockReduce<float, 4>::TempStorage t; };"), std::string::npos)
      << sorted;
  EXPECT_EQ(sorted.find("static"), std::string::npos) << sorted;
  EXPECT_NE(sorted.find("auto& t = "), std::string::npos) << sorted;
}

TEST(HostSource, DynamicSharedArraysAreDeclaredWhereTheyAreUsed) {
  EXPECT_EQ(Translate("__global__ void k() { extern __shared__ __align__(16) unsigned char s[]; s[0] = 1; }"),
            "__global__ void k() { unsigned char (&s)[] = *reinterpret_cast<unsigned char "
            "(*)[]>(::portolan::gpu::DynamicShared()); s[0] = 1; }");
  // Outside of functions: every function that says the name, and no member of the same name.
  EXPECT_EQ(Translate("extern __shared__ int s[];\n__device__ int f() { return s[0]; }\n"
                      "__device__ int g(P p) { return p.s; }\n"),
            "\n__device__ int f() { int (&s)[] = *reinterpret_cast<int (*)[]>(::portolan::gpu::DynamicShared()); "
            "return s[0]; }\n__device__ int g(P p) { return p.s; }\n");
}

TEST(HostSource, AFunctionsOwnNamesHideTheFilesArray) {
  const std::string text =
      "__shared__ extern int s[];\n__device__ void f(volatile int* s) { s[0] = 1; }\n"
      "__global__ void k() { __shared__ int s[32]; f(s); }\n__global__ void l() { f(s); }\n";
  const std::string translated = Translate(text);
  EXPECT_NE(translated.find("void f(volatile int* s) { s[0] = 1; }"), std::string::npos) << translated;
  EXPECT_NE(translated.find("void k() { struct "), std::string::npos) << translated;
  EXPECT_NE(translated.find("void l() { int (&s)[] = "), std::string::npos) << translated;
}

TEST(HostSource, LinesKeepTheirNumbers) {
  const std::string text =
      "__global__ void k() {\n  extern __shared__\n    int s[];\n  __shared__ int a\n[4];\n}\nvoid f() {\n  "
      "k<<<1,\n64\n"
      ">>>();\n}\n";
  const std::string translated = Translate(text);
  EXPECT_EQ(std::count(translated.begin(), translated.end(), '\n'), std::count(text.begin(), text.end(), '\n'));
}

TEST(HostSource, AssemblyOfDeviceCodeDoesNotReachTheHostsAssembler) {
  const std::string text = Translate(
      "__device__ unsigned f() { unsigned r; asm volatile(\"mov.u32 %0, %%frobnicate;\" : \"=r\"(r)); return r; }");
  EXPECT_NE(text.find("Unsupported(\"inline assembly\")"), std::string::npos) << text;
  EXPECT_EQ(Translate("__device__ void f() { asm volatile(\"\" ::: \"memory\"); }"),
            "__device__ void f() { asm volatile(\"\" ::: \"memory\"); }");
  EXPECT_EQ(Translate("void f() { asm(\"nop\"); }"), "void f() { asm(\"nop\"); }");
}

TEST(HostSource, ConstantsGetOtherValues) {
  const SourceFile source(
      "k.cu",
      "#define N (1 << 20)\nconst size_t M = f(1, 2) * 4, K = 3;\nint P = 5;\nvoid f(int N) { if (M == "
      "N) g(M); }\n");
  std::set<std::string> found;
  EXPECT_EQ(SetConstants(source, {{"N", "16"}, {"M", "8"}, {"P", "1"}, {"Q", "1"}}, &found),
            "#define N 16\nconst size_t M = 8, K = 3;\nint P = 5;\nvoid f(int N) { if (M == N) g(M); }\n");
  EXPECT_EQ(found, (std::set<std::string>{"M", "N"}));
}

TEST(HostSource, HipNamesBecomeCudas) {
  const SourceFile source("k.cpp",
                          "#include <hip/hip_runtime.h>\n#include <hipcub/hipcub.hpp>\nvoid f() { hipMalloc(&p, 4); "
                          "hipcub::BlockReduce<int, 4> r; hipMine(); }\n");
  EXPECT_EQ(RenameToCuda(source),
            "#include <cuda_runtime.h>\n#include <cub/cub.cuh>\nvoid f() { cudaMalloc(&p, 4); "
            "cub::BlockReduce<int, 4> r; cudaMine(); }\n");
}

}  // namespace
}  // namespace portolan
