#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "select/selector.h"

namespace portolan {

// A table of the ranked kernels: time, rate, confidence.
std::string ShowRanking(const Selector& selector, const GemmProblem& problem, std::span<const RankedKernel> ranked);
// The terms of the winner and up to three runners-up as bars, and in words what decides between the first two.
std::string ExplainRanking(const Selector& selector, const GemmProblem& problem, std::span<const RankedKernel> ranked);
nlohmann::ordered_json RankingJson(const Selector& selector, const GemmProblem& problem,
                                   std::span<const RankedKernel> ranked);

// One line that describes a kernel by the fields of its family, for example "128x256x64, 8 warps, 3 stages".
std::string DescribeKernel(const GemmKernel& kernel);

}  // namespace portolan
