#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/text.h"
#include "commands.h"
#include "select/catalogue_csv.h"
#include "select/catalogue_files.h"
#include "select/constants.h"
#include "select/explain.h"
#include "select/score_lists.h"
#include "select/selector.h"

namespace portolan {
namespace {

struct SelectArguments {
  std::vector<int64_t> sizes;
  std::string chip, layout = "TN", dtype = "bf16", epilogue = "none", catalogue, batch, out;
  int64_t products = 1;
  int64_t lda = 0, ldb = 0, ldd = 0;
  int units = 0, top = 5, alignment = 16;
  bool explain = false, warm = false;
};

void NoteIgnored(const std::string& path, const std::vector<std::string>& ignored) {
  if (ignored.empty()) return;
  std::fprintf(stderr, "portolan: %s: columns not used: %s\n", path.c_str(), Join(ignored, ", ").c_str());
}

Result<GemmProblem> ProblemFrom(const SelectArguments& arguments) {
  GemmProblem problem;
  if (arguments.sizes.size() != 3) return MakeError(ErrorCode::kUsage, "select needs M N K, or --batch FILE");
  for (const int64_t size : arguments.sizes) {
    if (size < 1 || size > (int64_t{1} << 40)) {
      return MakeError(ErrorCode::kInvalidValue, fmt::format("size {} is outside 1 to 2^40", size));
    }
  }
  problem.m = arguments.sizes[0];
  problem.n = arguments.sizes[1];
  problem.k = arguments.sizes[2];
  problem.batch = arguments.products;
  if (problem.batch < 1) return MakeError(ErrorCode::kInvalidValue, "--products must be at least 1");
  const auto dtype = ParseTableDType(arguments.dtype);
  if (!dtype) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("unknown number format '{}'{}; known: {}", arguments.dtype,
                                 DidYouMean(arguments.dtype, DTypeNames()), Join(DTypeNames(), ", ")));
  }
  problem.compute = *dtype;
  problem.a = problem.b = *dtype == DType::kTf32 ? DType::kFp32 : *dtype;
  problem.c = problem.d = SizeOf(*dtype).value <= 1.2 ? DType::kBf16 : problem.a;
  if (arguments.layout == "TN") {
    problem.layout = GemmLayout::kTN;
  } else if (arguments.layout == "NN") {
    problem.layout = GemmLayout::kNN;
  } else if (arguments.layout == "NT") {
    problem.layout = GemmLayout::kNT;
  } else {
    return MakeError(ErrorCode::kInvalidValue, fmt::format("layout '{}' is not one of TN, NN, NT", arguments.layout));
  }
  const auto epilogue = ParseGemmEpilogue(arguments.epilogue);
  if (!epilogue) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("--epilogue '{}' is not one of {}", arguments.epilogue, kGemmEpilogueNames));
  }
  problem.epilogue = *epilogue;
  const struct {
    const char* name;
    int64_t given, row;
    int64_t* stride;
  } strides[] = {{"--lda", arguments.lda, problem.layout == GemmLayout::kNT ? problem.m : problem.k, &problem.lda},
                 {"--ldb", arguments.ldb, problem.layout == GemmLayout::kTN ? problem.k : problem.n, &problem.ldb},
                 {"--ldd", arguments.ldd, problem.n, &problem.ldd}};
  for (const auto& [name, given, row, stride] : strides) {
    if (given != 0 && (given < row || given > int64_t{1} << 40)) {
      return MakeError(
          ErrorCode::kInvalidValue,
          fmt::format("{} {} is not 0 (packed) or from {}, the elements of a row, to 2^40", name, given, row));
    }
    *stride = given;
  }
  problem.ldc = problem.ldd;
  if (arguments.alignment < 1 || arguments.alignment > (1 << 20) ||
      (arguments.alignment & (arguments.alignment - 1)) != 0) {
    return MakeError(ErrorCode::kInvalidValue,
                     fmt::format("--alignment {} is not a power of two from 1 to 2^20", arguments.alignment));
  }
  problem.pointer_alignment_bytes = arguments.alignment;
  if (!IsPriceable(problem)) {
    return MakeError(ErrorCode::kInvalidValue, "M x N x products is more than 2^48 outputs");
  }
  if (arguments.units < 0) return MakeError(ErrorCode::kInvalidValue, "--units must not be negative");
  problem.usable_units = arguments.units;
  problem.inputs = arguments.warm ? InputResidency::kJustProduced : InputResidency::kCold;
  return problem;
}

Result<int> SelectOne(const GlobalOptions& global, const SelectArguments& arguments) {
  PORTOLAN_ASSIGN_OR_RETURN(const GemmProblem problem, ProblemFrom(arguments));
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue hardware, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(arguments.chip));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants(DataDirectories(global)));
  KernelCatalogue kernels;
  if (arguments.catalogue.empty()) {
    PORTOLAN_ASSIGN_OR_RETURN(ShippedKernels shipped,
                              LoadShippedKernels(DataDirectories(global), *accelerator, problem.compute));
    for (const std::string& note : shipped.notes) std::fprintf(stderr, "portolan: note: %s\n", note.c_str());
    kernels = std::move(shipped.catalogue);
  } else {
    PORTOLAN_ASSIGN_OR_RETURN(KernelList list, ReadKernels(arguments.catalogue, problem.compute));
    NoteIgnored(arguments.catalogue, list.ignored);
    for (size_t i = 0; i < list.catalogue.kernels.size(); ++i) {
      kernels.kernels.push_back(list.catalogue.kernels[i]);
      ForgetProblem(&kernels.kernels.back());
      kernels.ids.push_back(
          fmt::format("{}:{}", KernelFamilyName(kernels.kernels.back().family), list.catalogue.ids[i]));
    }
  }
  PORTOLAN_ASSIGN_OR_RETURN(const Selector selector, Selector::Create(*accelerator, std::move(kernels), constants));
  const auto ranked = selector.Rank(problem, arguments.top);
  if (ranked.empty()) {
    fmt::print("No kernel of the catalogue runs this problem ({} kernels looked at).\n",
               selector.catalogue().kernels.size());
    return 0;
  }
  fmt::print("{}", ShowRanking(selector, problem, ranked));
  if (arguments.explain) fmt::print("\n{}", ExplainRanking(selector, problem, ranked));
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, RankingJson(selector, problem, ranked)));
  }
  return 0;
}

// Scores every kernel on every problem, or the pairs that the catalogue ties.
Result<int> SelectBatch(const GlobalOptions& global, const SelectArguments& arguments) {
  if (arguments.catalogue.empty()) return MakeError(ErrorCode::kUsage, "--batch needs --catalogue FILE");
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue hardware, LoadCatalogue(global));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(arguments.chip));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants(DataDirectories(global)));
  PORTOLAN_ASSIGN_OR_RETURN(const ProblemList problems, ReadProblems(arguments.batch));
  NoteIgnored(arguments.batch, problems.ignored);
  if (problems.problems.empty()) return MakeError(ErrorCode::kInvalidValue, arguments.batch + " holds no problems");
  PORTOLAN_ASSIGN_OR_RETURN(const KernelList kernels, ReadKernels(arguments.catalogue, problems.problems[0].compute));
  NoteIgnored(arguments.catalogue, kernels.ignored);
  if (kernels.left_out > 0) {
    std::fprintf(stderr, "portolan: %s: %d rows that name no kernel were left out\n", arguments.catalogue.c_str(),
                 kernels.left_out);
  }
  PORTOLAN_ASSIGN_OR_RETURN(const int64_t written,
                            ScoreLists(problems, kernels, *accelerator, constants, arguments.out));
  fmt::print("{} problems, {} kernels: {} predictions in {}\n", problems.problems.size(),
             kernels.catalogue.kernels.size(), written, arguments.out);
  return 0;
}

}  // namespace

void AddSelectCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto arguments = std::make_shared<SelectArguments>();
  CLI::App* select = app.add_subcommand("select", "Which GEMM kernel to launch, unmeasured, and why");
  select->add_option("SIZES", arguments->sizes, "M N K of row-major D[M,N] = A[M,K] B[K,N]")->expected(0, 3);
  select->add_option("--on", arguments->chip, "accelerator id")->required();
  select->add_option("--layout", arguments->layout, "TN forward, NN input gradient, NT weight gradient")
      ->capture_default_str();
  select->add_option("--dtype", arguments->dtype, "bf16, tf32, fp8 ...")->capture_default_str();
  select->add_option("--products", arguments->products, "equal products in one call (batched)")->capture_default_str();
  select->add_option("--epilogue", arguments->epilogue, kGemmEpilogueNames)->capture_default_str();
  select->add_option("--lda", arguments->lda, "elements between the stored rows of A; 0 = packed");
  select->add_option("--ldb", arguments->ldb, "the same of B");
  select->add_option("--ldd", arguments->ldd, "the same of D");
  select->add_option("--alignment", arguments->alignment, "of the pointers, bytes")->capture_default_str();
  select->add_option("--units", arguments->units, "compute units or SMs that the product may use; 0 = all");
  select->add_flag("--warm", arguments->warm, "the operands were just produced, caches may hold them");
  select->add_option("--top", arguments->top, "how many kernels to list")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  select->add_flag("--explain", arguments->explain, "the terms of the winner and the runners-up, and why");
  select->add_option("--catalogue", arguments->catalogue, "kernels of your own (CSV, docs/select.md)")
      ->type_name("FILE");
  CLI::Option* batch =
      select->add_option("--batch", arguments->batch, "score a list of problems (CSV)")->type_name("FILE");
  select->add_option("--out", arguments->out, "predictions: problem_id,kernel_id,predicted_s")
      ->type_name("FILE")
      ->needs(batch);
  select->callback([&global, exit_code, arguments] {
    Result<int> result = 0;
    if (!arguments->batch.empty() && arguments->out.empty()) {
      result = MakeError(ErrorCode::kUsage, "--batch needs --out FILE");
    } else {
      result = arguments->batch.empty() ? SelectOne(global, *arguments) : SelectBatch(global, *arguments);
    }
    *exit_code = result ? *result : ReportError(result.error());
  });
}

}  // namespace portolan
