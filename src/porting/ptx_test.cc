#include "porting/ptx.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

std::string Translate(std::string_view text, const std::vector<std::string>& operands) {
  std::set<std::string> parts;
  return TranslatePtx(text, operands, &parts);
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

TEST(TranslatePtx, MovesData) {
  EXPECT_EQ(Translate("ld.global.u32 %0, [%1];", {"v", "p"}),
            "portolan::ptx_load<unsigned, false>(portolan::ptx_address<unsigned>(p, 0), v)");
  EXPECT_EQ(Translate("ld.acquire.global.sys.v2.b32 {%0, %1}, [%2+8];", {"v.x", "v.y", "p"}),
            "do { portolan::ptx_load<unsigned, true>(portolan::ptx_address<unsigned>(p, 8), v.x, v.y); "
            "__threadfence_system(); } while (0)");
  EXPECT_EQ(Translate("st.shared.f32 [%0], %1;", {"at", "v"}),
            "portolan::ptx_store<float, false>(portolan::ptx_address<float>(static_cast<unsigned>(at), 0), v)");
  EXPECT_EQ(
      Translate("st.release.gpu.global.s32 [%0], 1;", {"flag"}),
      "do { __threadfence(); portolan::ptx_store<int, true>(portolan::ptx_address<int>(flag, 0), 1); } while (0)");
  EXPECT_EQ(Translate("cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %3;", {"to", "from", "16", "n"}),
            "portolan::cp_async(portolan::ptx_address<unsigned>(static_cast<unsigned>(to), 0), "
            "portolan::ptx_address<const unsigned>(from, 0), 16, n)");
  EXPECT_EQ(Translate("mov.b64 {%0, %1}, %2;", {"low", "high", "both"}), "portolan::ptx_unpack(low, high, both)");
  EXPECT_EQ(Translate("mov.b64 %0, {%1, %2};", {"both", "low", "high"}), "portolan::ptx_pack(both, low, high)");
  EXPECT_EQ(Translate("mov.b16 %0, %1;", {"bits", "half"}), "portolan::ptx_assign(bits, half)");
  EXPECT_EQ(Translate("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;", {"r", "v", "16"}),
            "r = portolan::shfl_xor_sync(0xffffffff, v, 16, 32)");
  EXPECT_EQ(Translate("shfl.sync.up.b32 %0, %1, %2, 0x1000, %3;", {"r", "v", "d", "m"}),
            "r = portolan::shfl_up_sync(m, v, d, 16)");
  EXPECT_EQ(Translate("red.global.add.f32 [%0], %1;", {"p", "v"}),
            "atomicAdd(portolan::ptx_address<float>(p, 0), portolan::ptx_bits<float>(v))");
  EXPECT_EQ(Translate("atom.global.cas.b32 %0, [%1], 0, %2;", {"old", "p", "v"}),
            "portolan::ptx_assign(old, atomicCAS(portolan::ptx_address<unsigned>(p, 0), static_cast<unsigned>(0), "
            "portolan::ptx_bits<unsigned>(v)))");
}

TEST(TranslatePtx, TakesABlockWithItsRegisters) {
  EXPECT_EQ(Translate("{\\n .reg .pred p;\\n setp.ne.b32 p, %0, 0;\\n @p prefetch.global.L2 [%1];\\n}", {"b", "a"}),
            "do { bool portolan_p; portolan_p = static_cast<unsigned>(b) != static_cast<unsigned>(0); "
            "if (portolan_p) (void)0; } while (0)");
  EXPECT_EQ(Translate("{ .reg .pred q; setp.lt.s32 q, %1, %2; @!q mov.b32 %0, %1; }", {"a", "b", "c"}),
            "do { bool portolan_q; portolan_q = static_cast<int>(b) < static_cast<int>(c); "
            "if (!portolan_q) portolan::ptx_assign(a, b); } while (0)");
  EXPECT_EQ(Translate("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }", {"at", "p"}),
            "do { unsigned long long portolan_t; portolan_t = portolan::cvta_generic_to_shared((const void *)(p)); "
            "at = static_cast<unsigned>(portolan_t); } while (0)");
  EXPECT_EQ(Translate("add.u32 %0, %1, %2; add.u32 %0, %0, 1;", {"a", "b", "c"}),
            "do { a = (b) + (c); a = (a) + (1); } while (0)");
  EXPECT_EQ(Translate("{ .reg .pred p; setp.eq.u32 p, %1, 0; selp.u32 %0, 1, 0, p; }", {"a", "b"}),
            "do { bool portolan_p; portolan_p = static_cast<unsigned>(b) == static_cast<unsigned>(0); "
            "a = portolan_p ? (1) : (0); } while (0)");
  for (const char* text :
       {"{ .reg .pred p; setp.lt.f16 p, %0, 0; @p mov.b32 %1, 1; }",
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; @q mov.b32 %1, 1; }",
        "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p mma.sync %1; }", "{ .reg .b32 r<4>; mov.b32 r0, %1; }",
        "{ .reg .b32 r; mov.b32 s, %1; }", "@p add.u32 %0, %1, %2; trap;", ".reg ; .reg .b32"}) {
    EXPECT_EQ(Translate(text, {"a", "b", "c"}), "") << text;
  }
}

TEST(TranslatePtx, TakesTheBlocksBarrierOnly) {
  EXPECT_EQ(Translate("bar.sync 0;", {}), "__syncthreads()");
  EXPECT_EQ(Translate("bar.sync 1, 128;", {}), "");
  EXPECT_EQ(Translate("bar.sync %0;", {"id"}), "");
}

TEST(TranslatePtx, RefusesTheRest) {
  for (const char* text :
       {"", ";", "mma.sync %0, %1;", "mov.u32 %0, %%smid;", "ld.local.u32 %0, [%1];", "ld.global.u32 %0, %1;",
        "ld.global.v2.u32 %0, [%1];", "st.global.u32 [%0], {%1, %2};", "shfl.sync.bfly.b32 %0, %1, %2, 0x0f, -1;",
        "atom.global.add.noftz.f16 %0, [%1], %2;", "@p add.u32 %0, %1, %2;", "add.u32 %0, %1;",
        "add.u32 %0, %1, %2, %1;", "add.u32 %9, %1, %2;", "add.u32 3, %1, %2;", "add.u32 %0, %1, %%tid.x;"}) {
    EXPECT_EQ(Translate(text, {"a", "b", "c"}), "") << text;
  }
}

}  // namespace
}  // namespace portolan
