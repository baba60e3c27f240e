#include <gtest/gtest.h>

#include "porting/port.h"

namespace portolan {
namespace {

std::string Ported(const std::string& text) { return PortMakefile(text, "gfx950"); }

TEST(PortMakefile, PortsCompilerFlagsAndLibraries) {
  EXPECT_EQ(Ported("CC = nvcc\n"), "CC = hipcc\n");
  EXPECT_EQ(Ported("CC:=nvcc"), "CC:=hipcc");
  EXPECT_EQ(Ported("\t/usr/local/cuda/bin/nvcc -arch=$(ARCH) -Xcompiler -Wall -c x.cu\n"),
            "\thipcc --offload-arch=gfx950 -Wall -c x.cu\n");
  EXPECT_EQ(Ported("F = -gencode arch=compute_70,code=sm_70 -gencode arch=compute_80,code=sm_80 -O3\n"),
            "F = --offload-arch=gfx950 -O3\n");
  EXPECT_EQ(Ported("LIBS = -lcublas -lcudart -lm\r\n"), "LIBS = -lhipblas -lamdhip64 -lm\r\n");
  EXPECT_EQ(Ported("F = -arch=sm_60\\\n -O3\n"), "F = --offload-arch=gfx950\\\n -O3\n");
  EXPECT_EQ(Ported("F = -Xptxas -v -rdc=true --use_fast_math\n"), "F = -fgpu-rdc -ffast-math\n");
}

TEST(PortMakefile, LeavesTheRest) {
  for (const char* text : {"", "# CC = nvcc\n", "nvcc_path = x\n", "\tg++  -O3   -c x.cc # nvcc\n", "all: a b\n\n\n",
                           "\t@echo nvcc-like\n", "x = a\\\n"}) {
    EXPECT_EQ(Ported(text), text);
  }
  const std::string once = Ported("CC = nvcc\nF = -arch=sm_60 -lcufft\n");
  EXPECT_EQ(Ported(once), once);
}

}  // namespace
}  // namespace portolan
