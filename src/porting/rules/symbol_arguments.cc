// cudaMemcpyToSymbol(x, ...) becomes hipMemcpyToSymbol(HIP_SYMBOL(x), ...). The new name is rename-api's work.

#include "porting/rules/rules.h"

namespace portolan {

void ApplySymbolArguments(const RuleInput& input, RuleOutput* output) {
  struct Call {
    std::string_view name;
    size_t argument;
  };
  constexpr Call kCalls[] = {{"cudaMemcpyToSymbol", 0},
                             {"cudaMemcpyToSymbolAsync", 0},
                             {"cudaMemcpyFromSymbol", 1},
                             {"cudaMemcpyFromSymbolAsync", 1},
                             {"cudaGetSymbolAddress", 1},
                             {"cudaGetSymbolSize", 1},
                             {"cudaGraphAddMemcpyNodeToSymbol", 4},
                             {"cudaGraphAddMemcpyNodeFromSymbol", 5},
                             {"cudaGraphMemcpyNodeSetParamsToSymbol", 1},
                             {"cudaGraphMemcpyNodeSetParamsFromSymbol", 2},
                             {"cudaGraphExecMemcpyNodeSetParamsToSymbol", 2},
                             {"cudaGraphExecMemcpyNodeSetParamsFromSymbol", 3}};
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.Text(i).substr(0, 4) != "cuda" || !source.Is(i + 1, "(")) continue;
    for (const Call& call : kCalls) {
      if (!input.IsFreeName(i, call.name)) continue;
      const auto arguments = source.Arguments(i + 1);
      if (arguments.size() <= call.argument) continue;
      const auto [begin, end] = arguments[call.argument];
      if (begin >= end || source.Is(begin, "HIP_SYMBOL") || source.tokens()[begin].kind == TokenKind::kString) continue;
      output->Insert(source.tokens()[begin].begin, "HIP_SYMBOL(");
      output->Insert(source.tokens()[end - 1].end, ")");
    }
  }
}

}  // namespace portolan
