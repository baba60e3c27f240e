#include "porting/ptx.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

std::string Translate(std::string_view text, const std::vector<std::string>& operands) {
  std::string part;
  return TranslatePtx(text, operands, &part);
}

TEST(TranslatePtx, TranslatesOneInstruction) {
  EXPECT_EQ(Translate("mov.u32 %0, %%laneid;", {"lane"}), "lane = portolan::lane()");
  EXPECT_EQ(Translate("mov.u32 %0, %lanemask_lt;", {"m"}), "m = (1u << portolan::lane()) - 1");
  EXPECT_EQ(Translate("lop3.b32 %0, %1, %2, %3, 0x96;\\n\\t", {"r", "a", "b", "c"}),
            "r = portolan::lop3(a, b, c, 0x96)");
  EXPECT_EQ(Translate("rcp.approx.ftz.f32 %0, %1;", {"y", "x + 1"}), "y = 1.0f / (x + 1)");
  EXPECT_EQ(Translate("{ tanh.approx.f32 %0, %1; }", {"y", "x"}), "y = tanhf(x)");
  EXPECT_EQ(Translate("membar.gl;", {}), "__threadfence()");
  EXPECT_EQ(Translate("prefetch.global.L2 [%0];", {"p"}), "(void)0");
}

TEST(TranslatePtx, RefusesTheRest) {
  for (const char* text :
       {"", ";", "mma.sync %0, %1;", "mov.u32 %0, %1;", "mov.u32 %0, %%smid;", "add.u32 %0, %1, %2; add.u32 %0, %0, 1;",
        "ld.global.u32 %0, [%1];", "{ .reg .u32 t; add.u32 %0, %1, %2; }", "@p add.u32 %0, %1, %2;", "add.u32 %0, %1;",
        "add.u32 %0, %1, %2, %1;", "add.u32 %9, %1, %2;", "add.u32 3, %1, %2;", "add.u32 %0, %1, %%tid.x;"}) {
    EXPECT_EQ(Translate(text, {"a", "b", "c"}), "") << text;
  }
}

}  // namespace
}  // namespace portolan
