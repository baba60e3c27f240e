// Any bytes as a fabric file: it is read or refused, and what is read has rates and latencies that make sense.

#include <cmath>
#include <cstdlib>

#include "fuzz_file.h"
#include "hw/fabric.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const portolan::FuzzFile file("links.yaml");
  file.Write(data, size);
  const auto fabric = portolan::ReadFabric(file.path());
  if (!fabric) {
    if (fabric.error().message.empty()) std::abort();
    return 0;
  }
  for (const double value : {fabric->device_peak.value, fabric->link_peak.value, fabric->latency.value}) {
    if (!std::isfinite(value) || value < 0) std::abort();
  }
  if (!(fabric->sustained_fraction > 0 && fabric->sustained_fraction <= 1)) std::abort();
  if (fabric->id.empty() || fabric->max_devices < 1) std::abort();
  return 0;
}
