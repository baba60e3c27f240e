#include "porting/source.h"

#include <gtest/gtest.h>

#include "porting/condition.h"

namespace portolan {
namespace {

size_t Find(const SourceFile& source, std::string_view text) {
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.Is(i, text)) return i;
  }
  return source.size();
}

Liveness LivenessOf(const std::string& text) {
  const SourceFile source("a.cu", text);
  return source.LivenessOf(Find(source, "here"));
}

TEST(SourceFile, CountsLinesAndColumns) {
  const SourceFile source("a.cu",
                          "\xEF\xBB\xBF"
                          "a\r\n  b\n");
  const Position a = source.PositionOf(source.tokens()[0].begin);
  const Position b = source.PositionOf(source.tokens()[1].begin);
  EXPECT_EQ(a.line, 1);
  EXPECT_EQ(a.column, 1);
  EXPECT_EQ(b.line, 2);
  EXPECT_EQ(b.column, 3);
}

TEST(SourceFile, SplitsArguments) {
  const SourceFile source("a.cu", "f(a, g(b, c), h<d, e>(x), k<2, 3>, l < m, n > o)");
  const auto arguments = source.Arguments(1);
  std::vector<std::string> texts;
  for (const auto& [begin, end] : arguments) texts.emplace_back(source.Range(begin, end));
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "g(b, c)", "h<d, e>(x)", "k<2, 3>", "l < m", "n > o"}));
  EXPECT_TRUE(SourceFile("a.cu", "f()").Arguments(1).empty());
  EXPECT_TRUE(SourceFile("a.cu", "f(a").Arguments(1).empty());
}

TEST(SourceFile, KnowsWhatHipCompiles) {
  EXPECT_EQ(LivenessOf("here"), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf("#if 0\nhere\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#if 1\n#else\nhere\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#ifndef USE_ROCM\nhere\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#ifdef USE_ROCM\nhere\n#endif"), Liveness::kHipOnly);
  EXPECT_EQ(LivenessOf("#ifdef USE_ROCM\n#else\nhere\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#if defined(__HIPCC__) || defined(X)\nhere\n#endif"), Liveness::kHipOnly);
  EXPECT_EQ(LivenessOf("#if !defined(__HIP__) && X > 3\nhere\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#if X\n#elif defined(__HIP__)\nhere\n#endif"), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf("#if X\nhere\n#endif"), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf("#ifdef __CUDACC__\nhere\n#endif"), Liveness::kUnknown);
  // Each pass compiles one of the two.
  EXPECT_EQ(LivenessOf("#ifdef __HIP_DEVICE_COMPILE__\n#else\nhere\n#endif"), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf("#if 0\n#ifdef USE_ROCM\nhere\n#endif\n#endif"), Liveness::kDead);
  EXPECT_EQ(LivenessOf("#if (0\nhere"), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf("#else\nhere\n#endif\n#endif"), Liveness::kUnknown);
}

TEST(SourceFile, FindsDeviceFunctions) {
  const SourceFile source(
      "a.cu",
      "__global__ void __launch_bounds__(256, 2) kernel(int* x) { x[0] = 1; }\n"
      "__device__ int table[4] = {1, 2, 3, 4};\n"
      "__device__ float declared(float x);\n"
      "template <typename T, int N> __host__ __device__ inline T both(T x) const noexcept { return x; }\n"
      "void host() { kernel<<<1, 2>>>(p); }\n");
  ASSERT_EQ(source.device_functions().size(), 2u);
  EXPECT_EQ(source.device_functions()[0].name, "kernel");
  EXPECT_TRUE(source.device_functions()[0].is_kernel);
  EXPECT_EQ(source.device_functions()[1].name, "both");
  EXPECT_FALSE(source.device_functions()[1].is_kernel);
  EXPECT_EQ(source.EnclosingDeviceFunction(Find(source, "<<<")), nullptr);
  EXPECT_EQ(source.EnclosingDeviceFunction(Find(source, "return"))->name, "both");
}

TEST(SourceFile, SurvivesUnbalancedBrackets) {
  const SourceFile source("a.cu", "f((a[ } { )\n#define B (\n#define C )\nvoid g() { if (x) { }");
  EXPECT_EQ(source.Closing(1), source.size());
  EXPECT_TRUE(source.Arguments(1).empty());
}

TEST(Truth, IsThreeValued) {
  EXPECT_EQ(Or(Truth::kUnknown, Truth::kTrue), Truth::kTrue);
  EXPECT_EQ(Or(Truth::kUnknown, Truth::kFalse), Truth::kUnknown);
  EXPECT_EQ(And(Truth::kUnknown, Truth::kFalse), Truth::kFalse);
  EXPECT_EQ(And(Truth::kTrue, Truth::kUnknown), Truth::kUnknown);
  EXPECT_EQ(Not(Truth::kUnknown), Truth::kUnknown);
}

}  // namespace
}  // namespace portolan
