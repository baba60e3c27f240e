#include "porting/verify/build_commands.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

TEST(ReadMakeOutput, ObjectsAreLinkedAndRun) {
  const BuildPlan plan = ReadMakeOutput(
      "make: Entering directory '/p'\n"
      "nvcc  -std=c++17 -Xcompiler -Wall -arch=sm_60 -O3 -DN=4 -I../include -c main.cu -o main.o\n"
      "g++ -c ref.cpp -fopenmp \\\n  -o ref.o\n"
      "nvcc -O3 main.o ref.o -o main -lcudart -lm -L/opt/x\n"
      "./main 100 > log\n"
      "make: Leaving directory '/p'\n",
      "/p");
  ASSERT_EQ(plan.programs.size(), 1u);
  const BuildProgram& program = plan.programs[0];
  EXPECT_EQ(program.name, "main");
  ASSERT_EQ(program.units.size(), 2u);
  EXPECT_EQ(program.units[0].source, "main.cu");
  EXPECT_TRUE(program.units[0].device);
  EXPECT_EQ(program.units[0].flags, (std::vector<std::string>{"-std=c++17", "-DN=4", "-I/include"}));
  EXPECT_FALSE(program.units[1].device);
  EXPECT_TRUE(program.units[1].openmp);
  EXPECT_EQ(program.libraries, (std::vector<std::string>{"-lm", "-L/opt/x"}));
  EXPECT_EQ(plan.run_commands, (std::vector<std::string>{"./main 100 > log"}));
}

TEST(ReadMakeOutput, FoldersAndArchivesAreFollowed) {
  const BuildPlan plan = ReadMakeOutput(
      "cd src && hipcc -c a.cpp -o a.o\n"
      "make[1]: Entering directory '/p/lib'\n"
      "nvcc -c b.cu -o b.o\n"
      "ar rcs libb.a b.o\n"
      "make[1]: Leaving directory '/p/lib'\n"
      "nvcc -o run src/a.o lib/libb.a\n",
      "/p/");
  ASSERT_EQ(plan.programs.size(), 1u);
  ASSERT_EQ(plan.programs[0].units.size(), 2u);
  EXPECT_EQ(plan.programs[0].units[0].source, "src/a.cpp");
  EXPECT_TRUE(plan.programs[0].units[0].device) << "hipcc takes every source for HIP";
  EXPECT_EQ(plan.programs[0].units[1].source, "lib/b.cu");
}

TEST(ReadMakeOutput, OneCommandForAll) {
  const BuildPlan plan = ReadMakeOutput("nvcc -O2 a.cu b.cpp -o prog\n", "/p");
  ASSERT_EQ(plan.programs.size(), 1u);
  EXPECT_EQ(plan.programs[0].units.size(), 2u);
  EXPECT_TRUE(ReadMakeOutput("echo nothing to be done\n", "/p").programs.empty());
}

}  // namespace
}  // namespace portolan
