// Any YAML as a model file: it is read or refused, and never crashes, hangs or throws.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/yaml.h"
#include "model/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto value = portolan::YamlValue::Parse(text, "fuzz.yaml")) {
    const auto model = portolan::ReadModel(*value);
    if (!model && model.error().message.empty()) std::abort();
  }
  return 0;
}
