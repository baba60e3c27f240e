// TF32: torch.backends.*.allow_tf32 = True, set_float32_matmul_precision("high" or "medium"), fp32_precision = "tf32".
// CDNA 3 has XF32 matrix instructions, CDNA 4 dropped them (AMD's instruction set guides; the accelerator's file).

#include <fmt/format.h>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

// An argument of a function rather than a setting: of what type the operands are is not known.
bool IsArgument(const JobFile& file, size_t i) {
  return file.Text(i) == "allow_tf32" && i > 0 && (file.Text(i - 1) == "(" || file.Text(i - 1) == ",");
}

// Whether the call that argument `i` belongs to speaks of operands that are narrower than TF32: fp8_gemm(x_bf16, ...).
bool HasNarrowOperands(const JobFile& file, size_t i) {
  constexpr size_t kLongest = 200;  // tokens of a call
  const auto narrow = [&file](size_t at) {
    const std::string text = LowerCase(file.Text(at));
    for (const char* type : {"fp8", "float8", "bf16", "bfloat16", "fp16", "float16", "int8", "fp4"}) {
      if (text.find(type) != std::string::npos) return true;
    }
    return false;
  };
  int depth = 0;
  for (size_t at = i; at > 0 && i - at < kLongest; --at) {
    if (narrow(at)) return true;
    if (file.Text(at) == ")") ++depth;
    if (file.Text(at) == "(" && --depth < 0) {
      if (narrow(at - 1)) return true;
      break;
    }
  }
  depth = 0;
  for (size_t at = i; at < file.tokens().size() && at - i < kLongest; ++at) {
    if (narrow(at)) return true;
    if (file.Text(at) == "(") ++depth;
    if (file.Text(at) == ")" && --depth < 0) break;
  }
  return false;
}

// The token of a switch that asks for TF32, or the number of tokens.
bool AsksForTf32(const JobFile& file, size_t i) {
  if (file.Text(i) == "allow_tf32") return file.Reads(i + 1, {"=", "True"});
  if (file.Text(i) == "set_float32_matmul_precision" && file.Text(i + 1) == "(" && file.IsString(i + 2)) {
    const std::string_view precision = PythonStringContent(file.Text(i + 2));
    return precision == "high" || precision == "medium";
  }
  return file.Text(i) == "fp32_precision" && file.Text(i + 1) == "=" && file.IsString(i + 2) &&
         PythonStringContent(file.Text(i + 2)) == "tf32";
}

}  // namespace

void ApplyTf32(const JobInput& input, JobOutput* output) {
  const PortTarget& target = input.target;
  for (size_t i = 0; i < input.file.tokens().size(); ++i) {
    if (!AsksForTf32(input.file, i)) continue;
    const bool argument = IsArgument(input.file, i);
    if (argument && HasNarrowOperands(input.file, i)) continue;
    const uint32_t place = input.file.tokens()[i].begin;
    if (target.tf32_flops > 0) {
      output->Find(input.file, place, FindingLevel::kNote, "tf32",
                   fmt::format("{} has XF32 ({:.0f} TFLOP/s, float32 {:.0f}); PyTorch for ROCm asks for it only with "
                               "HIPBLASLT_ALLOW_TF32=1",
                               target.gfx, target.tf32_flops / 1e12, target.fp32_flops / 1e12),
                   "set HIPBLASLT_ALLOW_TF32=1, or compute in bfloat16");
    } else {
      output->Find(input.file, place, argument ? FindingLevel::kNote : FindingLevel::kWarning, "tf32",
                   fmt::format("{} has no TF32: {} run in float32 at {:.0f} TFLOP/s; bfloat16 has {:.0f}", target.gfx,
                               argument ? "products of float32 operands" : "these products", target.fp32_flops / 1e12,
                               target.bf16_flops / 1e12),
                   "autocast to bfloat16 where TF32 was precise enough");
    }
  }
}

}  // namespace portolan
