// Any bytes as a source, and as the shim that is there: making a shim, reading it and comparing end, and a shim that
// was just made lacks nothing.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "porting/shim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  portolan::PortTarget target;
  target.gfx = "gfx942";
  target.accelerator_id = "mi300x";
  target.accelerator_name = "AMD Instinct MI300X";
  target.shared_memory_bytes = 65536;
  const portolan::SourceFile source("fuzz.cu", text);
  portolan::ProjectFacts facts;
  portolan::CollectFacts(source, &facts);
  portolan::CollectLaunches(source, &facts);
  const portolan::HipDeclarations none;
  const portolan::RuleInput input{source, facts, target, none};
  portolan::Shim shim;
  std::vector<portolan::ShimNeed> needs;
  portolan::CollectShim(input, &shim, &needs);
  const auto findings = portolan::ShimFindings(input, &shim, &needs);
  const auto files = portolan::ShimFiles(shim, target, "..");
  if (!files.empty() && !portolan::ShimLacks(portolan::ReadShim(files), shim, files, needs, findings).empty()) {
    std::abort();
  }
  portolan::ShimLacks(portolan::ReadShim({{portolan::kShimHeaderName, text}}), shim, files, needs, findings);
  return 0;
}
