// HIP's runtime takes kernels as const void *, where CUDA's C++ header has templates that take any function.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyKernelPointerArguments(const RuleInput& input, RuleOutput* output) {
  struct Call {
    std::string_view name;
    size_t argument;
  };
  constexpr Call kCalls[] = {{"cudaFuncSetAttribute", 0},       {"cudaFuncSetCacheConfig", 0},
                             {"cudaFuncSetSharedMemConfig", 0}, {"cudaFuncGetAttributes", 1},
                             {"cudaLaunchKernel", 0},           {"cudaLaunchCooperativeKernel", 0}};
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.Text(i).substr(0, 4) != "cuda" || !source.Is(i + 1, "(")) continue;
    for (const Call& call : kCalls) {
      if (!input.IsFreeName(i, call.name) || input.project.own_names.count(call.name) > 0) continue;
      const auto arguments = source.Arguments(i + 1);
      if (arguments.size() <= call.argument) continue;
      const auto [begin, end] = arguments[call.argument];
      if (begin >= end || source.Is(begin, "reinterpret_cast")) continue;
      if (source.Is(begin, "(") && source.Range(begin, source.Closing(begin)).find("void") != std::string_view::npos) {
        continue;
      }
      output->Find(source, i, FindingLevel::kError, "kernel-pointer",
                   fmt::format("{} takes a const void * in HIP; a kernel does not convert to it", call.name),
                   "port: casts the kernel");
      output->Insert(source.tokens()[begin].begin, "reinterpret_cast<const void*>(");
      output->Insert(source.tokens()[end - 1].end, ")");
    }
  }
}

}  // namespace portolan
