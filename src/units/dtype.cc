#include "units/dtype.h"

#include <array>

#include "base/check.h"

namespace portolan {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  double bytes;
};

constexpr double kMxScaleBytes = 1.0 / 32.0;  // OCP Microscaling Formats 1.0, §5.2: one E8M0 scale a 32 elements
constexpr std::array kDTypes = {
    DTypeRow{DType::kFp64, "fp64", 8.0},
    DTypeRow{DType::kFp32, "fp32", 4.0},
    DTypeRow{DType::kTf32, "tf32", 4.0},
    DTypeRow{DType::kFp16, "fp16", 2.0},
    DTypeRow{DType::kBf16, "bf16", 2.0},
    DTypeRow{DType::kFp8E4m3, "fp8_e4m3", 1.0},
    DTypeRow{DType::kFp8E5m2, "fp8_e5m2", 1.0},
    DTypeRow{DType::kMxFp8, "mxfp8", 1.0 + kMxScaleBytes},
    DTypeRow{DType::kMxFp6, "mxfp6", 0.75 + kMxScaleBytes},
    DTypeRow{DType::kMxFp4, "mxfp4", 0.5 + kMxScaleBytes},
    DTypeRow{DType::kInt8, "int8", 1.0},
    DTypeRow{DType::kInt32, "int32", 4.0},
    DTypeRow{DType::kInt64, "int64", 8.0},
};

const DTypeRow& Row(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row;
  }
  PORTOLAN_CHECK(false, "dtype without a row");
}

}  // namespace

const char* DTypeName(DType dtype) { return Row(dtype).name; }
Bytes SizeOf(DType dtype) { return Bytes(Row(dtype).bytes); }

std::optional<DType> ParseDType(std::string_view name) {
  if (name == "fp8") return DType::kFp8E4m3;
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  for (const DTypeRow& row : kDTypes) names.emplace_back(row.name);
  return names;
}

}  // namespace portolan
