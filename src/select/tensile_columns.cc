#include <algorithm>
#include <array>
#include <string>

#include "select/family_tensile.h"

namespace portolan {
namespace {

constexpr int kMostSize = 4096;

// "64x4x1" -> 64, 4, 1; what is missing stays 0.
std::array<int, 3> Sizes(CsvRow& row, const char* column, const char* fallback) {
  const std::string text = row.Text(column, fallback);
  std::array<int, 3> sizes{};
  size_t at = 0, place = 0;
  bool digits = false;
  for (; at < text.size() && place < sizes.size(); ++at) {
    if (text[at] >= '0' && text[at] <= '9') {
      sizes[place] = std::min(10 * sizes[place] + (text[at] - '0'), kMostSize + 1);
      digits = true;
    } else if (text[at] == 'x' && digits) {
      ++place;
      digits = false;
    } else {
      break;
    }
  }
  if (at < text.size() || (!text.empty() && !digits) || *std::max_element(sizes.begin(), sizes.end()) > kMostSize) {
    row.Fail(column, "'" + text + "' is not like 64x4x1, each from 0 to " + std::to_string(kMostSize));
    return {};
  }
  return sizes;
}

}  // namespace

void ReadTensileColumns(CsvRow& row, GemmKernel* kernel) {
  const auto number = [&](const char* column, int64_t fallback) {
    return static_cast<int16_t>(row.Integer(column, {-1, 32767}, fallback));
  };
  const auto small = [&](const char* column, int64_t fallback) {
    return static_cast<int8_t>(row.Integer(column, {-1, 127}, fallback));
  };
  kernel->tile_n = number("mt0", 0);
  kernel->tile_m = number("mt1", 0);
  kernel->tile_k = number("depth_u", 0);
  const auto instruction = Sizes(row, "mi", "16x16");
  kernel->instruction_n = static_cast<int16_t>(instruction[0]);
  kernel->instruction_m = static_cast<int16_t>(instruction[1]);
  const auto wave_tile = Sizes(row, "wave_tile", "");
  kernel->wave_tile_n = static_cast<int16_t>(wave_tile[0]);
  kernel->wave_tile_m = static_cast<int16_t>(wave_tile[1]);
  const auto group = Sizes(row, "work_group", "32x8x1");
  kernel->extra[kRowsAtOnce] = static_cast<int16_t>(group[0]);
  kernel->waves =
      static_cast<int16_t>(std::clamp<int64_t>(int64_t{group[0]} * group[1] * std::max(1, group[2]) / 64, 1, 1024));
  kernel->stages = number("pgr", 2);
  kernel->local_prefetch = small("plr", -1);
  kernel->direct_to_lds_a = small("dtl_a", -1);
  kernel->direct_to_lds_b = small("dtl_b", -1);
  kernel->global_read_a = small("grvw_a", 0);
  kernel->global_read_b = small("grvw_b", 0);
  kernel->local_read = small("lrvw", 0);
  kernel->store_vector = small("svw", 0);
  kernel->vector_a = small("vw_a", 0);
  kernel->vector_b = small("vw_b", 0);
  kernel->split_k = number("gsu", 1);
  kernel->stream_k = small("streamk", 0);
  kernel->persistent = kernel->stream_k > 0 ? 1 : 0;
  kernel->swizzle = number("wgm", 0);
  kernel->xcd_mapping = number("wgm_xcc", 0);
  kernel->hand_scheduled = small("cms", 0);
  constexpr std::pair<TensileKnob, const char*> kKnobs[] = {{kClusterLocalRead, "clr"},
                                                            {kTransposeLds, "tlds"},
                                                            {kOneLdsBuffer, "one_lds_buf"},
                                                            {kStaggerU, "stagger_u"},
                                                            {kStaggerStride, "stagger_stride"},
                                                            {kNonTemporalA, "nt_a"},
                                                            {kNonTemporalB, "nt_b"},
                                                            {kNonTemporalD, "nt_d"},
                                                            {kScheduleIterAlg, "sia"},
                                                            {kElementsPerBatchedStore, "nepbs"},
                                                            {kLdsPadA, "lpa"},
                                                            {kLdsPadB, "lpb"}};
  for (const auto& [knob, column] : kKnobs) kernel->extra[knob] = number(column, -1);
}

}  // namespace portolan
