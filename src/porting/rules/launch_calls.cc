// kernel<<<grid, block, bytes, stream>>>(a) becomes hipLaunchKernelGGL(kernel, dim3(grid), dim3(block), bytes, stream,
// a), which compilers without the syntax take too (HIP-CPU). Only where it is asked for: HIP's own compiler takes
// <<<>>>.

#include "porting/rules/rules.h"

namespace portolan {
namespace {

// The > that begins the >>> of the launch whose <<< is at `chevrons`, and where its arguments part; size() for none.
size_t EndOfConfiguration(const SourceFile& source, size_t chevrons, std::vector<size_t>* commas) {
  constexpr size_t kLongest = 300;  // tokens
  for (size_t at = chevrons + 1; at < source.size() && at < chevrons + kLongest; ++at) {
    const std::string_view text = source.Text(at);
    if (text == ">" && source.Is(at + 1, ">") && source.Is(at + 2, ">")) return at;
    if (text == ";") break;
    if (text == ",") commas->push_back(at);
    if (text == "(" || text == "[" || text == "{") at = source.Closing(at);
  }
  return source.size();
}

}  // namespace

void ApplyLaunchCalls(const RuleInput& input, RuleOutput* output) {
  if (!input.target.launch_calls) return;
  const SourceFile& source = input.source;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.Is(i, "<<<") || source.tokens()[i].kind != TokenKind::kPunctuator || input.IsDead(i)) continue;
    size_t name = LaunchedName(source, i);
    std::vector<size_t> commas;
    const size_t end = EndOfConfiguration(source, i, &commas);
    if (!source.IsIdentifier(name) || end >= source.size() || !source.Is(end + 3, "(") || commas.empty() ||
        commas.size() > 3) {
      continue;
    }
    const bool is_template = name + 1 != i;
    while (name >= 1 && source.Is(name - 1, "::")) name -= name >= 2 && source.IsIdentifier(name - 2) ? 2 : 1;
    output->Insert(source.tokens()[name].begin,
                   is_template ? "hipLaunchKernelGGL(HIP_KERNEL_NAME(" : "hipLaunchKernelGGL(");
    const auto edit = [&](size_t from, size_t to, std::string text) {
      output->edits.push_back({source.tokens()[from].end, source.tokens()[to].begin, std::move(text)});
    };
    const auto is_dim3 = [&](size_t begin, size_t stop) {
      return source.Is(begin, "dim3") && source.Is(begin + 1, "(") && source.Closing(begin + 1) + 1 == stop;
    };
    const size_t block_end = commas.size() > 1 ? commas[1] : end;
    const bool grid_dim3 = is_dim3(i + 1, commas[0]);
    const bool block_dim3 = is_dim3(commas[0] + 1, block_end);
    edit(i - 1, i + 1, std::string(is_template ? ")" : "") + (grid_dim3 ? ", " : ", dim3("));
    edit(commas[0] - 1, commas[0] + 1, std::string(grid_dim3 ? "" : ")") + (block_dim3 ? ", " : ", dim3("));
    if (commas.size() > 1) edit(commas[1] - 1, commas[1] + 1, block_dim3 ? ", " : "), ");
    if (commas.size() > 2) edit(commas[2] - 1, commas[2] + 1, ", ");
    std::string rest = commas.size() == 1 ? (block_dim3 ? ", 0, 0" : "), 0, 0") : commas.size() == 2 ? ", 0" : "";
    const bool empty = source.Closing(end + 3) == end + 4;
    edit(end - 1, end + 4, rest + (empty ? "" : ", "));
  }
}

}  // namespace portolan
