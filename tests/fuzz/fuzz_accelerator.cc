// Any bytes as an accelerator file: it is read or refused, and what is read has no rate or size below zero.

#include <cmath>
#include <cstdlib>

#include "fuzz_file.h"
#include "hw/accelerator.h"

namespace portolan {
namespace {

void Check(const Accelerator& accelerator) {
  const double values[] = {accelerator.hbm.value,
                           accelerator.hbm_peak.value,
                           accelerator.hbm_sustained.value,
                           accelerator.l2.value,
                           accelerator.l2_rate.value,
                           accelerator.mall.value,
                           accelerator.clock_boost.value,
                           accelerator.kernel_fixed.value,
                           accelerator.host_link.value,
                           accelerator.peak_vector_fp32.value,
                           accelerator.power_w,
                           static_cast<double>(accelerator.compute_units)};
  for (const double value : values) {
    if (!std::isfinite(value) || value < 0) std::abort();
  }
  if (accelerator.id.empty() || accelerator.dies < 1) std::abort();
  for (const PeakCheck& check : CheckPeaks(accelerator)) {
    if (!(check.stated.value > 0)) std::abort();
  }
}

}  // namespace
}  // namespace portolan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const portolan::FuzzFile file("chip.yaml");
  file.Write(data, size);
  const auto accelerator = portolan::ReadAccelerator(file.path());
  if (accelerator) portolan::Check(*accelerator);
  if (!accelerator && accelerator.error().message.empty()) std::abort();
  return 0;
}
