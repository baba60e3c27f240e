#include "porting/target.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"

namespace portolan {
namespace {

Result<int> ParseRocm(const std::string& text) {
  const std::vector<std::string> parts = Split(text, '.');
  long long major = 0;
  long long minor = 0;
  if (parts.size() < 2 || !ParseInt64(parts[0], &major) || !ParseInt64(parts[1], &minor) || minor < 0 || minor > 9 ||
      major * 100 + minor < 502 || major > 7) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("ROCm release '{}': accepted are 5.2 to 7.9, for example 6.3", text));
  }
  return static_cast<int>(major * 100 + minor);
}

}  // namespace

Result<PortTarget> FindPortTarget(const Catalogue& catalogue, const std::string& name, const std::string& rocm) {
  PortTarget target;
  PORTOLAN_ASSIGN_OR_RETURN(target.rocm, ParseRocm(rocm));
  const Accelerator* found = nullptr;
  std::vector<std::string> known;
  for (const auto& [id, accelerator] : catalogue.accelerators()) {
    const bool nvidia = accelerator.isa.rfind("sm_", 0) == 0;
    if (!nvidia && accelerator.isa.rfind("gfx", 0) != 0) {
      if (id == name) {
        return MakeError(ErrorCode::kUnsupported,
                         fmt::format("target '{}' is neither AMD's nor NVIDIA's: ports go between CUDA and HIP", name));
      }
      continue;
    }
    known.push_back(fmt::format("{} ({})", id, accelerator.isa));
    if (found == nullptr && (id == name || accelerator.isa == name)) found = &accelerator;
  }
  if (found == nullptr) {
    return MakeError(ErrorCode::kNotFound, fmt::format("unknown target '{}'; known: {}", name, Join(known, ", ")));
  }
  target.gfx = found->isa;
  target.to_cuda = found->isa.rfind("sm_", 0) == 0;
  target.accelerator_id = found->id;
  target.accelerator_name = found->name;
  target.wave_size = found->wave_size;
  target.shared_memory_bytes = static_cast<int64_t>(found->shared_memory_per_unit.value);
  target.fp32_flops = found->peak_matrix[DType::kFp32].value;
  target.tf32_flops = found->peak_matrix[DType::kTf32].value;
  target.bf16_flops = found->peak_matrix[DType::kBf16].value;
  target.register_bytes = static_cast<int64_t>(found->registers_per_unit.value);
  return target;
}

}  // namespace portolan
