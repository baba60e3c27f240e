#include "porting/compat.h"

#include <array>
#include <vector>

#include "base/check.h"

namespace portolan {
namespace {

struct Part {
  std::string_view name;
  std::vector<std::string_view> needs;      // parts that must stand before it
  std::string_view text;                    // HIP source
  std::vector<std::string_view> functions;  // CUDA device functions for which it has portolan::<name without __>
};

constexpr std::string_view kHead =
#include "porting/compat/base.hip.inc"
    ;

// In the order in which the header holds them.
const std::vector<Part>& Parts() {
  static const auto* parts = new std::vector<Part>{
      {"cuda_arch",
       {},
#include "porting/compat/cuda_arch.hip.inc"
       ,
       {}},
      {"launch_bounds",
       {},
#include "porting/compat/launch_bounds.hip.inc"
       ,
       {}},
      {"warp_size",
       {},
#include "porting/compat/warp_size.hip.inc"
       ,
       {}},
      {"warp_base",
       {},
#include "porting/compat/warp_base.hip.inc"
       ,
       {"__activemask"}},
      {"warp_shuffle",
       {},
#include "porting/compat/warp_shuffle.hip.inc"
       ,
       {"__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
        "__shfl_xor_sync"}},
      {"warp_vote",
       {"warp_base"},
#include "porting/compat/warp_vote.hip.inc"
       ,
       {"__ballot", "__any", "__all", "__ballot_sync", "__any_sync", "__all_sync"}},
      {"warp_match",
       {"warp_base", "warp_shuffle", "warp_vote"},
#include "porting/compat/warp_match.hip.inc"
       ,
       {"__match_any_sync", "__match_all_sync"}},
      {"warp_reduce",
       {"warp_base", "warp_shuffle"},
#include "porting/compat/warp_reduce.hip.inc"
       ,
       {"__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",
        "__reduce_xor_sync"}},
      {"warp_barrier",
       {},
#include "porting/compat/warp_barrier.hip.inc"
       ,
       {"__syncwarp"}},
      {"dot_product",
       {},
#include "porting/compat/dot_product.hip.inc"
       ,
       {"__dp4a"}},
      {"cache_hints",
       {},
#include "porting/compat/cache_hints.hip.inc"
       ,
       {"__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv", "__stcg", "__stcs", "__stwb", "__stwt"}},
      {"nanosleep",
       {},
#include "porting/compat/nanosleep.hip.inc"
       ,
       {"__nanosleep"}},
      {"cg_reduce",
       {"warp_shuffle"},
#include "porting/compat/cg_reduce.hip.inc"
       ,
       {}},
  };
  return *parts;
}

}  // namespace

std::string CompatHeader(const std::set<std::string>& parts) {
  std::set<std::string_view> wanted;
  for (const std::string& name : parts) wanted.insert(name);
  // A part needs only parts before it, so one backward pass finds all.
  for (auto part = Parts().rbegin(); part != Parts().rend(); ++part) {
    if (wanted.count(part->name) > 0) wanted.insert(part->needs.begin(), part->needs.end());
  }
  std::string text(kHead);
  size_t written = 0;
  for (const Part& part : Parts()) {
    if (wanted.count(part.name) == 0) continue;
    text += part.text;
    ++written;
  }
  PORTOLAN_CHECK(written == wanted.size());
  return text;
}

std::set<std::string> CompatParts() {
  std::set<std::string> names;
  for (const Part& part : Parts()) names.emplace(part.name);
  return names;
}

std::string_view CompatPartOf(std::string_view cuda_function) {
  if (cuda_function.substr(0, 2) != "__") return {};
  for (const Part& part : Parts()) {
    for (const std::string_view function : part.functions) {
      if (function == cuda_function) return part.name;
    }
  }
  return {};
}

}  // namespace portolan
