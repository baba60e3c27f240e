// CUDA's headers become HIP's. A quoted name that the project has a file for is the project's own, whatever it is
// called. Quotes and brackets stay. Where several headers of CUDA become one of HIP's, the first stays. nvcc includes
// the runtime header before every .cu file; the port writes that include out.

#include <fmt/format.h>

#include <set>

#include "porting/compat.h"
#include "porting/rules/rules.h"

namespace portolan {
namespace {

// Tokens of "#pragma once" and its end: a guard may stand behind it.
constexpr size_t kDirectiveOfPragmaOnce = 4;

std::string_view FileName(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Whether what stands at a token is compiled whenever the file is: in no #if other than an include guard.
bool IsUnconditional(const SourceFile& source, size_t token) {
  for (const Conditional& conditional : source.conditionals()) {
    const bool inside = conditional.branches.front().hash < token && token < conditional.branches.back().end;
    const bool guard = conditional.branches.size() == 1 &&
                       conditional.branches.front().hash <= kDirectiveOfPragmaOnce &&
                       source.Is(conditional.branches.front().hash + 1, "ifndef");
    if (inside && !guard) return false;
  }
  return true;
}

}  // namespace

void ApplyIncludes(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  std::set<std::string> included;  // by lines that no condition can leave out
  for (size_t i = 0; i + 2 < source.size(); ++i) {
    if (source.tokens()[i].kind != TokenKind::kHash || input.IsDead(i)) continue;
    if (!source.Is(i + 1, "include") && !source.Is(i + 1, "include_next")) continue;
    const Token& token = source.tokens()[i + 2];
    const std::string_view spelled = source.Text(i + 2);
    if ((token.kind != TokenKind::kHeaderName && token.kind != TokenKind::kString) || spelled.size() < 3) continue;
    const std::string_view name = spelled.substr(1, spelled.size() - 2);
    if (token.kind == TokenKind::kString && input.project.file_names.count(FileName(name)) > 0) continue;
    if (name == "cooperative_groups/reduce.h") {
      output->Find(source, i, FindingLevel::kError, "cooperative-groups",
                   fmt::format("HIP has no {}: its cooperative groups cannot reduce", name),
                   "port: the compatibility header brings cg::reduce");
      output->Replace(source, i + 2, "<hip/hip_cooperative_groups.h>");
      output->compat.insert("cg_reduce");
      continue;
    }
    const NameMapping mapping = MapHeader(name);
    const bool unconditional = IsUnconditional(source, i);
    if (mapping.fate != NameFate::kMapped) {
      if (unconditional) included.emplace(name);
      continue;
    }
    if (included.count(mapping.text) > 0) {
      output->edits.push_back({source.tokens()[i].begin, token.end, ""});
      continue;
    }
    if (unconditional) included.insert(mapping.text);
    output->Replace(source, i + 2, std::string(1, spelled.front()).append(mapping.text).append(1, spelled.back()));
    // cuBLAS's types of data and of computation are two; hipBLAS's are so in its second interface, the only one from
    // ROCm 7.
    if (mapping.text == "hipblas/hipblas.h" && input.target.RocmBefore(7, 0)) {
      output->Insert(source.tokens()[i].begin, "#define HIPBLAS_V2\n");
    }
  }
}

}  // namespace portolan
