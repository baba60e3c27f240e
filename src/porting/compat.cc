#include "porting/compat.h"

#include <array>
#include <unordered_map>
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

constexpr std::string_view kPartMark = "// Part: ";

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
      {"cuda_version",
       {},
#include "porting/compat/cuda_version.hip.inc"
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
      {"bf16",
       {},
#include "porting/compat/bf16.hip.inc"
       ,
       {"make_bfloat162", "__float2bfloat16_rn", "__floats2bfloat162_rn", "__float2bfloat162_rn", "__bfloat162int_rn",
        "__bfloat162int_rz", "__bfloat162uint_rn", "__int2bfloat16_rn", "__uint2bfloat16_rn",
        "__internal_bfloat162float"}},
      {"half_minus",
       {},
#include "porting/compat/half_minus.hip.inc"
       ,
       {}},
      {"half_host",
       {"half_minus"},
#include "porting/compat/half_host.hip.inc"
       ,
       {}},
      {"half_conversion",
       {},
#include "porting/compat/half_conversion.hip.inc"
       ,
       {}},
      {"half_atomics",
       {},
#include "porting/compat/half_atomics.hip.inc"
       ,
       {}},
      {"blas_half",
       {},
#include "porting/compat/blas_half.hip.inc"
       ,
       {}},
      {"byte_simd",
       {},
#include "porting/compat/byte_simd.hip.inc"
       ,
       {"__vabs2",    "__vabs4",    "__vabsdiffs2", "__vabsdiffs4", "__vabsdiffu2", "__vabsdiffu4", "__vabsss2",
        "__vabsss4",  "__vadd2",    "__vadd4",      "__vaddss2",    "__vaddss4",    "__vaddus2",    "__vaddus4",
        "__vavgs2",   "__vavgs4",   "__vavgu2",     "__vavgu4",     "__vcmpeq2",    "__vcmpeq4",    "__vcmpges2",
        "__vcmpges4", "__vcmpgeu2", "__vcmpgeu4",   "__vcmpgts2",   "__vcmpgts4",   "__vcmpgtu2",   "__vcmpgtu4",
        "__vcmples2", "__vcmples4", "__vcmpleu2",   "__vcmpleu4",   "__vcmplts2",   "__vcmplts4",   "__vcmpltu2",
        "__vcmpltu4", "__vcmpne2",  "__vcmpne4",    "__vhaddu2",    "__vhaddu4",    "__vmaxs2",     "__vmaxs4",
        "__vmaxu2",   "__vmaxu4",   "__vmins2",     "__vmins4",     "__vminu2",     "__vminu4",     "__vneg2",
        "__vneg4",    "__vnegss2",  "__vnegss4",    "__vsads2",     "__vsads4",     "__vsadu2",     "__vsadu4",
        "__vseteq2",  "__vseteq4",  "__vsetges2",   "__vsetges4",   "__vsetgeu2",   "__vsetgeu4",   "__vsetgts2",
        "__vsetgts4", "__vsetgtu2", "__vsetgtu4",   "__vsetles2",   "__vsetles4",   "__vsetleu2",   "__vsetleu4",
        "__vsetlts2", "__vsetlts4", "__vsetltu2",   "__vsetltu4",   "__vsetne2",    "__vsetne4",    "__vsub2",
        "__vsub4",    "__vsubss2",  "__vsubss4",    "__vsubus2",    "__vsubus4"}},
      {"ptx",
       {},
#include "porting/compat/ptx.hip.inc"
       ,
       {}},
      {"ptx_move",
       {},
#include "porting/compat/ptx_move.hip.inc"
       ,
       {}},
      {"shared_address",
       {},
#include "porting/compat/shared_address.hip.inc"
       ,
       {"__cvta_generic_to_shared", "__cvta_shared_to_generic", "__cvta_generic_to_global",
        "__cvta_global_to_generic"}},
      {"ptx_half",
       {},
#include "porting/compat/ptx_half.hip.inc"
       ,
       {}},
      {"half_math",
       {},
#include "porting/compat/half_math.hip.inc"
       ,
       {"htanh_approx", "h2tanh_approx", "htanh", "h2tanh"}},
      {"device_runtime",
       {},
#include "porting/compat/device_runtime.hip.inc"
       ,
       {}},
      {"kernel_pointer",
       {},
#include "porting/compat/kernel_pointer.hip.inc"
       ,
       {}},
      {"texture",
       {},
#include "porting/compat/texture.hip.inc"
       ,
       {}},
      {"memory_location",
       {},
#include "porting/compat/memory_location.hip.inc"
       ,
       {}},
      {"host_math",
       {},
#include "porting/compat/host_math.hip.inc"
       ,
       {}},
      {"nv_atomics",
       {},
#include "porting/compat/nv_atomics.hip.inc"
       ,
       {"__nv_atomic_load_n", "__nv_atomic_store_n", "__nv_atomic_fetch_add"}},
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

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

}  // namespace

std::string CompatHeader(const std::set<std::string>& parts) { return std::string(kHead) + CompatPartsText(parts); }

std::string CompatPartsText(const std::set<std::string>& parts) {
  std::set<std::string_view> wanted;
  for (const std::string& name : parts) wanted.insert(name);
  // A part needs only parts before it, so one backward pass finds all.
  for (auto part = Parts().rbegin(); part != Parts().rend(); ++part) {
    if (wanted.count(part->name) > 0) wanted.insert(part->needs.begin(), part->needs.end());
  }
  std::string text;
  size_t written = 0;
  for (const Part& part : Parts()) {
    if (wanted.count(part.name) == 0) continue;
    // Projects include each other's files, and with them each other's headers of this name.
    const std::string guard = "PORTOLAN_PART_" + UpperCase(part.name);
    text.append("\n").append(kPartMark).append(part.name);
    text.append("\n#ifndef ").append(guard).append("\n#define ").append(guard).append("\n");
    text += part.text.substr(1);
    text += "#endif\n";
    ++written;
  }
  PORTOLAN_CHECK(written == wanted.size(), "a part that does not exist");
  return text;
}

std::set<std::string> PartsOfCompatHeader(std::string_view header) {
  std::set<std::string> parts;
  const std::set<std::string> known = CompatParts();
  for (size_t at = header.find(kPartMark); at != std::string_view::npos; at = header.find(kPartMark, at + 1)) {
    const size_t begin = at + kPartMark.size();
    const std::string name(header.substr(begin, header.find_first_of("\r\n", begin) - begin));
    if (known.count(name) > 0) parts.insert(name);
  }
  return parts;
}

std::set<std::string> CompatParts() {
  std::set<std::string> names;
  for (const Part& part : Parts()) names.emplace(part.name);
  return names;
}

std::string_view CompatPartOf(std::string_view cuda_function) {
  static const auto* parts = [] {
    auto* map = new std::unordered_map<std::string_view, std::string_view>;
    for (const Part& part : Parts()) {
      for (const std::string_view function : part.functions) map->emplace(function, part.name);
    }
    return map;
  }();
  const auto part = parts->find(cuda_function);
  return part == parts->end() ? std::string_view() : part->second;
}

}  // namespace portolan
