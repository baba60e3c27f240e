// Any bytes as a source: lexing, rewriting and auditing end, tokens lie in order, and what was
// ported can be ported again.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "porting/port.h"

namespace portolan {
namespace {

PortTarget Target() {
  PortTarget target;
  target.gfx = "gfx942";
  target.accelerator_id = "mi300x";
  target.accelerator_name = "AMD Instinct MI300X";
  target.shared_memory_bytes = 65536;
  return target;
}

PortedSource PortText(const std::string& text) {
  const SourceFile source("fuzz.cu", text);
  uint32_t at = 0;
  for (const Token& token : source.tokens()) {
    if (token.begin < at || token.end < token.begin || token.end > text.size()) std::abort();
    at = token.end;
  }
  ProjectFacts facts;
  CollectFacts(source, &facts);
  CollectLaunches(source, &facts);
  return PortSource(source, facts, Target(), HipDeclarations(), "portolan_hip.h");
}

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  portolan::PortText(portolan::PortText(text).text);
  portolan::PortMakefile(portolan::PortMakefile(text, "gfx942"), "gfx942");
  return 0;
}
