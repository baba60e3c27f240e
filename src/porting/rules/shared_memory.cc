// Shared memory beyond what one compute unit has. CUDA code asks for more than 48 KiB by a function attribute; HIP
// needs no attribute, but a block cannot have more than the LDS.

#include <fmt/format.h>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

long long SizeOf(std::string_view type) {
  if (type == "double" || type == "int64_t" || type == "uint64_t" || type == "float2" || type == "int2") return 8;
  if (type == "float" || type == "int" || type == "unsigned" || type == "int32_t" || type == "uint32_t") return 4;
  if (type == "half" || type == "__half" || type == "short" || type == "__nv_bfloat16") return 2;
  if (type == "char" || type == "int8_t" || type == "uint8_t" || type == "bool") return 1;
  if (type == "float4" || type == "int4" || type == "double2") return 16;
  return 0;
}

}  // namespace

void ApplySharedMemory(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  const long long limit = input.target.shared_memory_bytes;
  const DeviceFunction* function = nullptr;
  long long sum = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || input.IsDead(i)) continue;
    if (source.Is(i, "__shared__") && !source.Is(i - 1, "extern")) {
      const DeviceFunction* around = source.EnclosingDeviceFunction(i);
      if (around == nullptr) continue;
      if (around != function) sum = 0;
      function = around;
      // __shared__ TYPE name[A][B];
      const long long element = SizeOf(source.Text(i + 1));
      size_t at = i + 3;
      long long bytes = element;
      while (source.Is(at, "[")) {
        long long extent = 0;
        const size_t close = source.Closing(at);
        if (!input.Constant(at + 1, close, &extent) || extent <= 0 || extent > (1 << 24)) bytes = 0;
        bytes *= extent;
        at = close + 1;
      }
      if (bytes <= 0) continue;
      const bool fitted = sum <= limit;
      sum += bytes;
      if (fitted && sum > limit) {
        output->Find(source, i, FindingLevel::kError, "shared-memory",
                     fmt::format("{} bytes of shared memory in '{}'; a compute unit of {} ({}) has {}", sum,
                                 function->name, input.target.gfx, input.target.accelerator_name, limit),
                     "use smaller tiles");
      }
    } else if (source.Is(i, "cudaFuncAttributeMaxDynamicSharedMemorySize") && source.Is(i + 1, ",")) {
      size_t end = i + 2;
      while (end < source.size() && !source.Is(end, ")") && end < i + 60) {
        end = source.Is(end, "(") ? std::min(source.Closing(end), source.size() - 1) + 1 : end + 1;
      }
      long long bytes = 0;
      const bool known = input.Constant(i + 2, end, &bytes);
      if (known && bytes > limit) {
        output->Find(source, i, FindingLevel::kError, "shared-memory",
                     fmt::format("asks for {} bytes of shared memory; a compute unit of {} ({}) has {}", bytes,
                                 input.target.gfx, input.target.accelerator_name, limit),
                     "use smaller tiles");
      } else if (!known) {
        output->Find(source, i, FindingLevel::kNote, "shared-memory",
                     fmt::format("a block of {} ({}) can have {} bytes of shared memory", input.target.gfx,
                                 input.target.accelerator_name, limit),
                     "check the size asked for");
      }
    }
  }
}

}  // namespace portolan
