#include "select/score_lists.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "select/constants.h"

namespace portolan {
namespace {

using Sizes = std::tuple<int64_t, int64_t, int64_t, int64_t, int, int>;
Sizes SizesOf(const GemmProblem& p) {
  return {p.m, p.n, p.k, p.batch, static_cast<int>(p.layout), static_cast<int>(p.compute)};
}

// "a,b" needs quotes in a CSV.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// The kernels that each problem meets.
std::vector<std::vector<size_t>> Pairs(const ProblemList& problems, const KernelList& kernels) {
  std::map<std::string, std::vector<size_t>> by_id;
  std::map<Sizes, std::vector<size_t>> by_size;
  for (size_t i = 0; i < kernels.catalogue.kernels.size(); ++i) {
    if (kernels.tied_by_id) by_id[kernels.tied_id[i]].push_back(i);
    if (kernels.tied_by_size) by_size[SizesOf(kernels.tied_problem[i])].push_back(i);
  }
  std::vector<std::vector<size_t>> pairs(problems.problems.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (kernels.tied_by_id) {
      if (const auto found = by_id.find(problems.ids[i]); found != by_id.end()) pairs[i] = found->second;
    } else if (kernels.tied_by_size) {
      if (const auto found = by_size.find(SizesOf(problems.problems[i])); found != by_size.end())
        pairs[i] = found->second;
    }
  }
  return pairs;
}

}  // namespace

Result<int64_t> ScoreLists(const ProblemList& problems, const KernelList& kernels, const Accelerator& accelerator,
                           const std::vector<FamilyConstants>& constants, const std::string& out_path) {
  const std::vector<GemmKernel>& all = kernels.catalogue.kernels;
  std::map<std::pair<KernelFamily, DType>, std::shared_ptr<const FamilyModel>> models;
  const auto model_of = [&](const GemmKernel& kernel) -> const FamilyModel& {
    auto& model = models[{kernel.family, kernel.compute}];
    if (!model) {
      model = FindFamily(kernel.family)
                  ->make(accelerator, PickConstants(constants, kernel.family, kernel.compute, accelerator));
    }
    return *model;
  };
  // Prepared one kernel at a time, once for tied pairs (with rank) and once for all pairs (without).
  std::vector<std::unique_ptr<KernelScorer>> tied(all.size()), free_of_rank(all.size());
  const auto scorer_of = [&](size_t i, bool is_tied) -> const KernelScorer& {
    auto& scorer = (is_tied ? tied : free_of_rank)[i];
    if (!scorer) {
      GemmKernel kernel = all[i];
      if (!is_tied) ForgetProblem(&kernel);
      scorer = model_of(kernel).Prepare({&kernel, 1});
    }
    return *scorer;
  };

  std::FILE* out = std::fopen(out_path.c_str(), "w");
  if (out == nullptr) return tl::make_unexpected(Error{ErrorCode::kIo, "cannot write the file", out_path, 0, ""});
  std::fputs("problem_id,kernel_id,predicted_s\n", out);
  int64_t written = 0;
  const auto pairs = Pairs(problems, kernels);
  for (size_t p = 0; p < problems.problems.size(); ++p) {
    const GemmProblem& problem = problems.problems[p];
    const auto write = [&](size_t i, bool is_tied) {
      if (all[i].compute != problem.compute) return;
      const double seconds = scorer_of(i, is_tied).Terms(problem, 0).total;
      fmt::print(out, "{},{},{:.7g}\n", Quoted(problems.ids[p]), Quoted(kernels.catalogue.ids[i]), seconds);
      ++written;
    };
    for (const size_t i : pairs[p]) write(i, true);
    if (!pairs[p].empty()) continue;
    for (size_t i = 0; i < all.size(); ++i) write(i, false);
  }
  const bool failed = std::ferror(out) != 0;
  if (std::fclose(out) != 0 || failed) {
    return tl::make_unexpected(Error{ErrorCode::kIo, "writing failed", out_path, 0, ""});
  }
  return written;
}

}  // namespace portolan
