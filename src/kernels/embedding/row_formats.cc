#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

namespace portolan::kernels {
namespace {

struct Int8Header {
  float scale;
  float bias;
};

// Scale and bias that map bytes 0 to 255 onto the row's range. A constant row has scale 0.
Int8Header HeaderFor(const float* values, int32_t dim) {
  float low = dim > 0 ? values[0] : 0.0f;
  float high = low;
  for (int32_t d = 1; d < dim; ++d) {
    low = std::min(low, values[d]);
    high = std::max(high, values[d]);
  }
  return {(high - low) / 255.0f, low};
}

uint8_t ToByte(float units) { return static_cast<uint8_t>(std::min(255.0f, std::max(0.0f, units))); }

// How a value becomes one of its format's: `units` are steps of an int8 row from its bias.
struct Nearest {
  uint16_t Half(float value, int32_t) const { return FloatToHalf(value); }
  uint16_t Bf16(float value, int32_t) const { return FloatToBf16(value); }
  float Units(float units, int32_t) const { return std::nearbyint(units); }
};
struct Stochastic {
  uint32_t key;
  uint16_t Half(float value, int32_t d) const { return FloatToHalfStochastic(value, RandomBits(key, d)); }
  uint16_t Bf16(float value, int32_t d) const { return FloatToBf16Stochastic(value, RandomBits(key, d)); }
  float Units(float units, int32_t d) const {
    const float uniform = static_cast<float>(RandomBits(key, d) >> 16) * FromBits(0x37800000u);  // 2^-16
    return std::floor(units + uniform);
  }
};

template <typename Rounding>
void StoreRounded(const float* values, int32_t dim, RowFormat format, const Rounding& rounding, void* row) {
  auto* halves = static_cast<uint16_t*>(row);
  switch (format) {
    case RowFormat::kFp32:
      std::memcpy(row, values, sizeof(float) * static_cast<size_t>(dim));
      return;
    case RowFormat::kFp16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = rounding.Half(values[d], d);
      return;
    case RowFormat::kBf16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = rounding.Bf16(values[d], d);
      return;
    case RowFormat::kInt8: {
      const Int8Header header = HeaderFor(values, dim);
      std::memcpy(row, &header, sizeof header);
      uint8_t* bytes = static_cast<uint8_t*>(row) + sizeof header;
      const float inverse = header.scale > 0 ? 1.0f / header.scale : 0.0f;
      for (int32_t d = 0; d < dim; ++d) bytes[d] = ToByte(rounding.Units((values[d] - header.bias) * inverse, d));
      return;
    }
  }
}

}  // namespace

void LoadRow(const void* row, RowFormat format, int32_t dim, float* values) {
  const auto* halves = static_cast<const uint16_t*>(row);
  switch (format) {
    case RowFormat::kFp32:
      std::memcpy(values, row, sizeof(float) * static_cast<size_t>(dim));
      return;
    case RowFormat::kFp16:
      for (int32_t d = 0; d < dim; ++d) values[d] = HalfToFloat(halves[d]);
      return;
    case RowFormat::kBf16:
      for (int32_t d = 0; d < dim; ++d) values[d] = Bf16ToFloat(halves[d]);
      return;
    case RowFormat::kInt8: {
      Int8Header header;
      std::memcpy(&header, row, sizeof header);
      const uint8_t* bytes = static_cast<const uint8_t*>(row) + sizeof header;
      for (int32_t d = 0; d < dim; ++d) values[d] = header.scale * static_cast<float>(bytes[d]) + header.bias;
      return;
    }
  }
}

void StoreRowStochastic(const float* values, int32_t dim, RowFormat format, uint32_t random_key, void* row) {
  StoreRounded(values, dim, format, Stochastic{random_key}, row);
}

void StoreRow(const float* values, int32_t dim, RowFormat format, void* row) {
  StoreRounded(values, dim, format, Nearest{}, row);
}

}  // namespace portolan::kernels
