#include "porting/project.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

ProjectFacts FactsOf(const std::string& text) {
  const SourceFile source("a.cu", text);
  ProjectFacts facts;
  CollectFacts(source, &facts);
  CollectFacts(source, &facts);
  CollectLaunches(source, &facts);
  return facts;
}

TEST(ProjectFacts, KnowsTheProjectsOwnNames) {
  const ProjectFacts facts = FactsOf(
      "#define cudaCheck(x) x\n"
      "cudaError_t cudaStatus = cudaSuccess;\n"
      "void cudaHelper(int a) {}\n"
      "class cuSolver {};\n"
      "int *cudaData;\n"
      "float* f(cudaStream_t cudaStream, int n);\n"
      "CHECKED cudaMalloc(&p, n);\n"
      "return cudaFree(p);\n"
      "x = flags & cudaHostAllocMapped;\n"
      "else cudaFree(p);\n"
      "__global__ void __launch_bounds__(f(256), 2) cuSort(int *p) { p[0] = 1; }\n"
      "if (x) cudaFree(p);\n"
      "const cudaDeviceProp;\n");
  const std::set<std::string, std::less<>> expected = {"cudaCheck", "cudaStatus", "cudaHelper", "cuSolver",
                                                       "cudaData",  "cudaStream", "cuSort"};
  EXPECT_EQ(facts.own_names, expected);
}

TEST(ProjectFacts, KnowsConstants) {
  const ProjectFacts facts = FactsOf(
      "#define A 32\n#define B (A * 4)\nconst int kC = B + 1;\nstatic constexpr unsigned kD = 1u << 5;\n"
      "#define F(x) 3\nint e = 5;\nconst int kTwice = 1;\nvoid f() { const int kTwice = 2; }\n#define G foo\n");
  EXPECT_EQ(facts.constants.at("A"), 32);
  EXPECT_EQ(facts.constants.at("B"), 128);
  EXPECT_EQ(facts.constants.at("kC"), 129);
  EXPECT_EQ(facts.constants.at("kD"), 32);
  for (const char* absent : {"F", "e", "kTwice", "G"}) EXPECT_EQ(facts.constants.count(absent), 0u) << absent;
}

TEST(ProjectFacts, KnowsLaunches) {
  const ProjectFacts facts = FactsOf(
      "#define T 128\nvoid f() { a<<<g, T>>>(x); a<<<dim3(1, 2), 32, 0, s>>>(x); b<float, 4><<<f(1, 2), n>>>(); }");
  EXPECT_EQ(facts.launched_blocks.at("a"), (std::set<long long>{32, 128}));
  EXPECT_EQ(facts.launched_blocks.at("b"), (std::set<long long>{0}));
}

TEST(ProjectFacts, KnowsTheDeclaratorsOfOneStatement) {
  const ProjectFacts facts = FactsOf(
      "cudaError_t cudaA, *cudaB = f(1, cudaSuccess), cudaC[2];\n"
      "int x = cudaMemcpyDefault, y; f(a, cudaStreamLegacy); k<<<1, cudaX>>>(b, cudaY);\n");
  EXPECT_EQ(facts.own_names, (std::set<std::string, std::less<>>{"cudaA", "cudaB", "cudaC"}));
}

// A variable of one value, a macro that the build may set, and a kernel that is handed on.
TEST(ProjectFacts, KnowsWhichLaunchesAreFixed) {
  const ProjectFacts facts = FactsOf(
      "#ifndef T\n#define T 64\n#endif\n__global__ void a() {} __global__ void b() {} __global__ void c() {}\n"
      "__global__ void d() {}\nvoid f() { dim3 s(8, 8); dim3 r = dim3(4); a<<<1, s>>>(); b<<<1, T>>>();\n"
      "c<<<1, 32>>>(); run(c); r.x = 5; d<<<1, r>>>(); }");
  EXPECT_EQ(facts.launched_blocks.at("a"), (std::set<long long>{64}));
  EXPECT_EQ(facts.launched_blocks.at("b"), (std::set<long long>{0}));
  EXPECT_EQ(facts.launched_blocks.at("c"), (std::set<long long>{0, 32}));
  EXPECT_EQ(facts.launched_blocks.at("d"), (std::set<long long>{0}));
}

// Another file's constant G does not say how large the variable G is.
TEST(ProjectFacts, DoesNotTakeAVariableForAConstantOfItsName) {
  ProjectFacts facts;
  const SourceFile constants("a.h", "constexpr int G = 16;\nconst int kT = 64;\n");
  const SourceFile launches("b.cu",
                            "__global__ void a() {} __global__ void b() {}\nconst int kT = 64;\n"
                            "void f(const int G) { a<<<1, G>>>(); b<<<1, kT>>>(); }");
  for (const SourceFile* source : {&constants, &launches}) CollectFacts(*source, &facts);
  CollectLaunches(launches, &facts);
  EXPECT_EQ(facts.launched_blocks.at("a"), (std::set<long long>{0}));
  EXPECT_EQ(facts.launched_blocks.at("b"), (std::set<long long>{64}));
}

TEST(Constants, AreEvaluated) {
  const auto value = [](const std::string& text) -> long long {
    const SourceFile source("a.cu", text);
    long long result = -1;
    return EvaluateConstant(source, 0, source.size(), ProjectFacts(), &result) ? result : -1;
  };
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("96 * 1024"), 98304);
  EXPECT_EQ(value("1 << 5"), 32);
  EXPECT_EQ(value("64 >> 1"), 32);
  EXPECT_EQ(value("7 - 2 - 1"), 4);
  for (const char* bad : {"", "a", "1 / 0", "1 +", "(1", "1 << 99", "9223372036854775807 + 1", "1.5", "f(1)"}) {
    EXPECT_EQ(value(bad), -1) << bad;
  }
}

TEST(Constants, IntegerLiterals) {
  unsigned long long value = 0;
  EXPECT_TRUE(ParseIntegerLiteral("0xffffffffu", &value));
  EXPECT_EQ(value, 0xffffffffULL);
  EXPECT_TRUE(ParseIntegerLiteral("1'000'000ull", &value));
  EXPECT_EQ(value, 1000000ULL);
  EXPECT_TRUE(ParseIntegerLiteral("0b101", &value));
  EXPECT_EQ(value, 5ULL);
  for (const char* bad : {"", "1.0", "1e3", "0xg", "x", "99999999999999999999"}) {
    EXPECT_FALSE(ParseIntegerLiteral(bad, &value)) << bad;
  }
}

}  // namespace
}  // namespace portolan
