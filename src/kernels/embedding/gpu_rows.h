#pragma once

#include "device/gpu_intrinsics.h"
#include "kernels/embedding/embedding.h"
#include "kernels/number_formats.h"

// What the gpu bodies of the embedding share: reading and writing a few columns of a row.
namespace portolan::kernels::PORTOLAN_BACKEND {

template <int kColumns>
struct Columns {
  float value[kColumns];
};

// Does every vector of kColumns elements of `element_bytes` from the start of each row lie on its own width?
PORTOLAN_DEVICE inline bool RowsAreAligned(const void* first, int64_t stride_bytes, int vector_bytes) {
  return (reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(stride_bytes)) %
             static_cast<uintptr_t>(vector_bytes) ==
         0;
}

// Columns [column, column + kColumns) of an fp32 vector of `dim`; zero beyond its end.
template <int kColumns>
PORTOLAN_DEVICE Columns<kColumns> LoadFloats(const float* values, int column, int dim, bool aligned) {
  Columns<kColumns> columns = {};
  if (aligned && column + kColumns <= dim) {
    for (int k = 0; k < kColumns; k += 4) {
      const auto vec = LoadVec<4>(values + column + k);
      for (int i = 0; i < 4; ++i) columns.value[k + i] = vec.value[i];
    }
  } else {
    for (int k = 0; k < kColumns; ++k) columns.value[k] = column + k < dim ? values[column + k] : 0.0f;
  }
  return columns;
}

template <int kColumns>
PORTOLAN_DEVICE void StoreFloats(const Columns<kColumns>& columns, float* values, int column, int dim, bool aligned) {
  if (aligned && column + kColumns <= dim) {
    for (int k = 0; k < kColumns; k += 4) {
      device::Vec<float, 4> vec;
      for (int i = 0; i < 4; ++i) vec.value[i] = columns.value[k + i];
      StoreVec(values + column + k, vec);
    }
  } else {
    for (int k = 0; k < kColumns; ++k) {
      if (column + k < dim) values[column + k] = columns.value[k];
    }
  }
}

// The scale and bias in front of an int8 row.
PORTOLAN_DEVICE inline device::Vec<float, 2> Int8Header(const char* row) {
  return LoadVec<2>(reinterpret_cast<const float*>(row));
}

// Columns of a row of a table as fp32; zero beyond its end. `aligned`: its elements, kColumns at a time, are.
template <RowFormat kFormat, int kColumns>
PORTOLAN_DEVICE Columns<kColumns> LoadColumns(const char* row, int column, int dim, bool aligned) {
  if constexpr (kFormat == RowFormat::kFp32) {
    return LoadFloats<kColumns>(reinterpret_cast<const float*>(row), column, dim, aligned);
  } else {
    Columns<kColumns> columns = {};
    if constexpr (kFormat == RowFormat::kInt8) {
      const auto header = Int8Header(row);
      const auto* bytes = reinterpret_cast<const uint8_t*>(row) + 8;
      device::Vec<uint8_t, kColumns> vec = {};
      if (aligned && column + kColumns <= dim) {
        vec = LoadVec<kColumns>(bytes + column);
      } else {
        for (int k = 0; k < kColumns; ++k) vec.value[k] = column + k < dim ? bytes[column + k] : uint8_t{0};
      }
      for (int k = 0; k < kColumns; ++k) {
        if (column + k < dim) columns.value[k] = header.value[0] * static_cast<float>(vec.value[k]) + header.value[1];
      }
    } else {
      const auto* halves = reinterpret_cast<const uint16_t*>(row);
      device::Vec<uint16_t, kColumns> vec = {};
      if (aligned && column + kColumns <= dim) {
        vec = LoadVec<kColumns>(halves + column);
      } else {
        for (int k = 0; k < kColumns; ++k) vec.value[k] = column + k < dim ? halves[column + k] : uint16_t{0};
      }
      for (int k = 0; k < kColumns; ++k) {
        columns.value[k] = kFormat == RowFormat::kFp16 ? HalfToFloat(vec.value[k]) : Bf16ToFloat(vec.value[k]);
      }
    }
    return columns;
  }
}

// Bytes of one vector of kColumns elements of a row.
template <RowFormat kFormat, int kColumns>
PORTOLAN_HOST_DEVICE constexpr int VectorBytes() {
  if (kFormat == RowFormat::kFp32) return 16;
  return kFormat == RowFormat::kInt8 ? kColumns : 2 * kColumns;
}

}  // namespace portolan::kernels::PORTOLAN_BACKEND
