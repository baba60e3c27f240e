// Any YAML as a recipe file: it is read or refused, and never crashes, hangs or throws.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/yaml.h"
#include "recipe/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto value = portolan::YamlValue::Parse(text, "fuzz.yaml")) {
    const auto recipe = portolan::ReadRecipe(*value);
    if (!recipe && recipe.error().message.empty()) std::abort();
  }
  return 0;
}
