#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "units/quantity.h"

namespace portolan {

// Number formats by the field's usual names: fp64 fp32 tf32 fp16 bf16 fp8_e4m3 fp8_e5m2 mxfp8 mxfp6 mxfp4 int8 int32
// int64. tf32 is fp32 in memory and a matrix-core input format in compute.
enum class DType {
  kFp64,
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kMxFp8,
  kMxFp6,
  kMxFp4,
  kInt8,
  kInt32,
  kInt64
};

const char* DTypeName(DType dtype);
// Accepts the names above, and "fp8" for fp8_e4m3.
std::optional<DType> ParseDType(std::string_view name);
std::vector<std::string> DTypeNames();
// Bytes of one element, block scales of the mx types (one byte a 32 elements) included.
Bytes SizeOf(DType dtype);

}  // namespace portolan
