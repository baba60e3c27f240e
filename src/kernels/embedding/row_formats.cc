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
  auto* halves = static_cast<uint16_t*>(row);
  switch (format) {
    case RowFormat::kFp32:
      std::memcpy(row, values, sizeof(float) * static_cast<size_t>(dim));
      return;
    case RowFormat::kFp16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = FloatToHalfStochastic(values[d], RandomBits(random_key, d));
      return;
    case RowFormat::kBf16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = FloatToBf16Stochastic(values[d], RandomBits(random_key, d));
      return;
    case RowFormat::kInt8: {
      const Int8Header header = HeaderFor(values, dim);
      std::memcpy(row, &header, sizeof header);
      uint8_t* bytes = static_cast<uint8_t*>(row) + sizeof header;
      const float inverse = header.scale > 0 ? 1.0f / header.scale : 0.0f;
      for (int32_t d = 0; d < dim; ++d) {
        const float uniform = static_cast<float>(RandomBits(random_key, d) >> 16) * FromBits(0x37800000u);  // 2^-16
        bytes[d] = ToByte(std::floor((values[d] - header.bias) * inverse + uniform));
      }
      return;
    }
  }
}

void StoreRow(const float* values, int32_t dim, RowFormat format, void* row) {
  auto* halves = static_cast<uint16_t*>(row);
  switch (format) {
    case RowFormat::kFp32:
      std::memcpy(row, values, sizeof(float) * static_cast<size_t>(dim));
      return;
    case RowFormat::kFp16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = FloatToHalf(values[d]);
      return;
    case RowFormat::kBf16:
      for (int32_t d = 0; d < dim; ++d) halves[d] = FloatToBf16(values[d]);
      return;
    case RowFormat::kInt8: {
      const Int8Header header = HeaderFor(values, dim);
      std::memcpy(row, &header, sizeof header);
      uint8_t* bytes = static_cast<uint8_t*>(row) + sizeof header;
      const float inverse = header.scale > 0 ? 1.0f / header.scale : 0.0f;
      for (int32_t d = 0; d < dim; ++d) bytes[d] = ToByte(std::nearbyint((values[d] - header.bias) * inverse));
      return;
    }
  }
}

}  // namespace portolan::kernels
