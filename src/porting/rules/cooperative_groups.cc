// Parts of cooperative groups that HIP lacks. cg::reduce comes with the compatibility header (see includes); the rest
// is reported.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {

void ApplyCooperativeGroups(const RuleInput& input, RuleOutput* output) {
  constexpr std::array<std::string_view, 8> kHeaders = {"cooperative_groups/memcpy_async.h",
                                                        "cooperative_groups/scan.h",
                                                        "cooperative_groups/details/partitioning.h",
                                                        "cooperative_groups/details/reduce.h",
                                                        "cooperative_groups/details/scan.h",
                                                        "cooperative_groups/details/async.h",
                                                        "cooperative_groups/details/coalesced_reduce.h",
                                                        "cooperative_groups/details/info.h"};
  constexpr std::array<std::string_view, 6> kMembers = {"labeled_partition", "this_cluster",   "invoke_one",
                                                        "memcpy_async",      "inclusive_scan", "exclusive_scan"};
  const SourceFile& source = input.source;
  for (size_t i = 2; i < source.size(); ++i) {
    if (input.IsDead(i)) continue;
    if (source.tokens()[i].kind == TokenKind::kHeaderName && source.Is(i - 1, "include")) {
      const std::string_view spelled = source.Text(i);
      for (const std::string_view header : kHeaders) {
        if (spelled.substr(1, spelled.size() - 2) != header) continue;
        output->Find(source, i, FindingLevel::kError, "cooperative-groups", fmt::format("HIP has no {}", header),
                     "replace what it is used for by hand");
      }
    } else if (source.IsIdentifier(i) && source.Is(i - 1, "::") &&
               (source.Is(i - 2, "cg") || source.Is(i - 2, "cooperative_groups"))) {
      for (const std::string_view member : kMembers) {
        if (!source.Is(i, member)) continue;
        output->Find(source, i, FindingLevel::kError, "cooperative-groups",
                     fmt::format("HIP's cooperative groups have no {}", member), "replace it by hand");
      }
    }
  }
}

}  // namespace portolan
