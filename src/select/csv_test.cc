#include "select/csv.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "select/catalogue_csv.h"
#include "select/score_lists.h"
#include "select/test_devices.h"

namespace portolan {
namespace {

std::string Write(const std::string& text) {
  static int count = 0;
  const std::string path = ::testing::TempDir() + "select_csv_" + std::to_string(count++) + ".csv";
  std::ofstream(path) << text;
  return path;
}

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CsvTest, QuotesCarriageReturnsAndMissingFields) {
  const auto table =
      CsvTable::Load(Write("\xEF\xBB\xBF"
                           "a,b,c\r\n1,\"x,\"\"y\"\"\",\r\n\r\n2.0,,3\r\n"));
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2);
  EXPECT_EQ(table->lines[1], 4);
  std::map<std::string, int> used;
  CsvRow row(*table, 0, &used);
  EXPECT_EQ(row.Text("b", ""), "x,\"y\"");
  EXPECT_FALSE(row.Has("c"));
  EXPECT_EQ(row.Integer("c", {}, 7), 7);
  EXPECT_TRUE(row.Finish());
  CsvRow second(*table, 1, &used);
  EXPECT_EQ(second.Integer("a", {}), 2);
}

TEST(CsvTest, BadFilesNameFileAndLine) {
  const auto line_of = [](const std::string& text) {
    const auto table = CsvTable::Load(Write(text));
    return table ? -1 : table.error().line;
  };
  EXPECT_EQ(line_of("a,b\n1,2\n1\n"), 3);
  EXPECT_EQ(line_of("a,a\n"), 1);
  EXPECT_EQ(line_of("a,b\n1,\"2\n"), 2);
  EXPECT_EQ(line_of(""), 0);
  EXPECT_FALSE(CsvTable::Load("/no/such/file.csv"));
}

TEST(CatalogueCsvTest, ProblemsInThreeNotations) {
  const auto own = ReadProblems(Write("problem_id,M,N,K,layout,dtype,note\nx,10,20,30,NT,tf32,hello\n"));
  ASSERT_TRUE(own);
  EXPECT_EQ(own->ids[0], "x");
  EXPECT_EQ(own->problems[0].m, 10);
  EXPECT_EQ(own->problems[0].layout, GemmLayout::kNT);
  EXPECT_EQ(own->problems[0].a, DType::kFp32);
  EXPECT_EQ(own->problems[0].compute, DType::kTf32);
  EXPECT_EQ(own->ignored, std::vector<std::string>{"note"});
  // BLAS order: D^T, so M is n.
  const auto blas = ReadProblems(Write("shape_id,type,transA,transB,m,n,k\n7,bf16,N,T,10,20,30\n"));
  ASSERT_TRUE(blas);
  EXPECT_EQ(blas->problems[0].m, 20);
  EXPECT_EQ(blas->problems[0].n, 10);
  EXPECT_EQ(blas->problems[0].layout, GemmLayout::kNT);
  const auto torch = ReadProblems(Write("m,n,k,a_type,out_type\n10,20,30,fp8,bf16\n10,20,30,fp8,bf16\n"));
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->problems.size(), 1) << "a repeated problem stands once";
  EXPECT_EQ(torch->problems[0].m, 10);
  EXPECT_EQ(torch->problems[0].compute, DType::kFp8E4m3);
}

TEST(CatalogueCsvTest, BadRowsAreRefusedWithTheirLine) {
  for (const char* row : {"0,1,1,TN", "1,1,x,TN", "1,1,1,TX", "1,,1,TN", "1.5,1,1,TN"}) {
    const auto problems = ReadProblems(Write(std::string("M,N,K,layout\n1,1,1,TN\n") + row + "\n"));
    ASSERT_FALSE(problems) << row;
    EXPECT_EQ(problems.error().line, 3) << row;
  }
  EXPECT_FALSE(ReadProblems(Write("a,b\n1,2\n")));
  const auto kernels = ReadKernels(Write("BM,BN,BK,warps,stages,splitk\n128,128,64,4,3,-2\n"), DType::kBf16);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().field, "splitk");
  EXPECT_FALSE(ReadKernels(Write("nothing\n1\n"), DType::kBf16));
}

TEST(CatalogueCsvTest, KernelsAreRecognisedByTheirColumns) {
  const auto triton = ReadKernels(
      Write("kernel_id,BM,BN,BK,warps,stages,splitk\nk,128,64,32,8,3,4\ntorch,0,0,0,0,0,0\n"), DType::kBf16);
  ASSERT_TRUE(triton);
  ASSERT_EQ(triton->catalogue.kernels.size(), 1);
  EXPECT_EQ(triton->left_out, 1);
  EXPECT_EQ(triton->catalogue.kernels[0].reduction, SplitReduction::kAtomic);
  const auto lt =
      ReadKernels(Write("algo,tile,stages,splitk,reduction,custom,cluster,rank\n66,23,35,1,0,4,3,5\n"), DType::kBf16);
  ASSERT_TRUE(lt);
  const GemmKernel& kernel = lt->catalogue.kernels[0];
  EXPECT_EQ(kernel.tile_n, 128);  // rows of column-major D
  EXPECT_EQ(kernel.tile_m, 256);
  EXPECT_EQ(kernel.cluster_n, 2);
  EXPECT_EQ(kernel.rank, -1) << "a rank counts only beside the problem it was given for";
}

TEST(ScoreListsTest, AllPairsOrTheTiedOnes) {
  const auto problems = ReadProblems(Write("problem_id,M,N,K\np,512,512,512\nq,1024,512,512\n"));
  const auto free_kernels = ReadKernels(
      Write("kernel_id,BM,BN,BK,warps,stages,splitk\na,128,128,64,4,3,1\n\"b,c\",64,64,64,4,3,1\n"), DType::kBf16);
  const std::string out = ::testing::TempDir() + "scores.csv";
  const auto all = ScoreLists(*problems, *free_kernels, RoundAccelerator(), {}, out);
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, 4);
  const std::string text = Read(out);
  EXPECT_EQ(text.substr(0, 34), "problem_id,kernel_id,predicted_s\np");
  EXPECT_NE(text.find("q,\"b,c\","), std::string::npos);
  const auto tied = ReadKernels(
      Write("problem_id,kernel_id,BM,BN,BK,warps,stages,splitk\np,a,128,128,64,4,3,1\nq,a,128,128,64,4,3,1\n"
            "q,b,64,64,64,4,3,1\n"),
      DType::kBf16);
  EXPECT_EQ(*ScoreLists(*problems, *tied, RoundAccelerator(), {}, out), 3);
  EXPECT_FALSE(ScoreLists(*problems, *tied, RoundAccelerator(), {}, "/no/such/dir/out.csv"));
}

TEST(ProblemCsvTest, ReadsStridesAlignmentEpilogueAndGroups) {
  const auto list =
      ReadProblems(Write("M,N,K,layout,lda,ldb,ldc,ldd,alignment,epilogue,group_rows,usable_units,cache\n"
                         "192,64,32,TN,40,32,64,80,4,add,128;0;64,20,warm\n"));
  ASSERT_TRUE(list) << FormatError(list.error());
  ASSERT_EQ(list->problems.size(), 1);
  const GemmProblem& p = list->problems[0];
  EXPECT_EQ(p.lda, 40);
  EXPECT_EQ(p.ldd, 80);
  EXPECT_EQ(p.pointer_alignment_bytes, 4);
  EXPECT_EQ(p.epilogue, GemmEpilogue::kAdd);
  ASSERT_EQ(p.groups, 3);
  EXPECT_EQ(p.group_m[0], 128);
  EXPECT_EQ(p.group_m[2], 64);
  EXPECT_EQ(p.usable_units, 20);
  EXPECT_TRUE(list->ignored.empty());
}

TEST(ProblemCsvTest, EveryFormatIsAccepted) {
  for (const char* name :
       {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "mxfp6", "mxfp4", "int8"}) {
    const auto list = ReadProblems(Write(std::string("M,N,K,dtype\n64,64,64,") + name + "\n"));
    ASSERT_TRUE(list) << name;
    EXPECT_STREQ(DTypeName(list->problems[0].compute), name);
  }
}

TEST(ProblemCsvTest, BadValuesAreRefusedByName) {
  const std::pair<const char*, const char*> kBad[] = {{"0,64,64,0,16,none,", "'M'"},
                                                      {"64,-1,64,0,16,none,", "'N'"},
                                                      {"64,64,nan,0,16,none,", "'K'"},
                                                      {"64,64,1e300,0,16,none,", "'K'"},
                                                      {"64,64,,0,16,none,", "'K'"},
                                                      {"64,64,64,63,16,none,", "'lda'"},
                                                      {"64,64,64,0,3,none,", "'alignment'"},
                                                      {"64,64,64,0,16,gelu,", "'epilogue'"},
                                                      {"64,64,64,0,16,none,32;31", "'group_rows'"},
                                                      {"64,64,64,0,16,none,32;x", "'group_rows'"},
                                                      {"1099511627776,1099511627776,64,0,16,none,", "'M'"}};
  for (const auto& [row, column] : kBad) {
    const auto list = ReadProblems(Write(std::string("M,N,K,lda,alignment,epilogue,group_rows\n") + row + "\n"));
    ASSERT_FALSE(list) << row;
    EXPECT_NE(FormatError(list.error()).find(std::string(column).substr(1, std::string(column).size() - 2)),
              std::string::npos)
        << FormatError(list.error());
  }
}

// Kernel sizes of a published table are text; none of it may overflow.
TEST(KernelCsvTest, HostileTensileSizesAreRefused) {
  for (const char* group : {"99999999999x4x1", "-64x4x1", "64x", "64x4x1x1", "axb"}) {
    EXPECT_FALSE(
        ReadKernels(Write(std::string("mt0,mt1,depth_u,work_group\n256,256,64,") + group + "\n"), DType::kBf16))
        << group;
  }
  EXPECT_TRUE(ReadKernels(Write("mt0,mt1,depth_u,work_group,mi\n256,256,64,64x4x1,16x16x32\n"), DType::kBf16));
}

}  // namespace
}  // namespace portolan
