// Any bytes as a file of validation entries: they are read or refused, and every entry that is read can be judged.

#include <cstdlib>

#include "fuzz_file.h"
#include "plan/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const portolan::FuzzFile file("validation/fuzz.yaml");
  file.Write(data, size);
  const auto entries = portolan::LoadValidation({file.folder()});
  if (!entries) {
    if (entries.error().message.empty()) std::abort();
    return 0;
  }
  for (const portolan::ValidationEntry& entry : *entries) {
    if (entry.id.empty() || entry.source.empty()) std::abort();
    if (entry.unmodelled.empty() && !(entry.step && entry.step->value > 0)) std::abort();
    if (!(entry.tolerance > 0)) std::abort();
  }
  return 0;
}
