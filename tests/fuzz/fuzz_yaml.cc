// Any text: parsing and typed reading of every value answer or refuse, and never crash, hang or throw.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/yaml.h"

namespace portolan {
namespace {

void ReadAll(const YamlValue& value, int* budget) {
  if (--*budget < 0) return;
  const auto string = value.String();
  const auto boolean = value.Bool();
  const auto number = value.Number({-1e12, 1e12});
  const auto integer = value.Integer(kNonNegative);
  const auto choice = value.OneOf({"fp32", "fp16"});
  if (integer && *integer < 0) std::abort();
  if (!number && FormatError(number.error()).empty()) std::abort();
  if (const auto elements = value.Elements()) {
    for (const YamlValue& element : *elements) ReadAll(element, budget);
  }
  if (auto map = value.Map()) {
    map->Number("rows", kPositive);
    map->Integer("dim", kPositive, 1);
    map->String("name", "");
    if (map->Finish() && !map->Has("rows")) std::abort();
    for (const auto& [key, child] : map->Entries()) ReadAll(child, budget);
  }
}

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  int budget = 10000;  // values: an alias can make more of them than a fuzz run has time for
  if (const auto value = portolan::YamlValue::Parse(text, "fuzz.yaml")) portolan::ReadAll(*value, &budget);
  return 0;
}
