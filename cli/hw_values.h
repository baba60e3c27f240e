#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hw/catalogue.h"
#include "hw/diff.h"

namespace portolan {

// The value that an accelerator holds under a key which its file leaves out, in the key's unit; none for a key that has
// no number.
std::optional<double> InheritedValue(const Accelerator& accelerator, const std::string& key);

// `value` in the unit that the key's name says, with a prefix: hbm_bytes 2.88e11 is "288 GB", kernel_fixed_s 4e-6 is
// "4 us". On-chip memory is in KiB or MiB, as data sheets give it.
std::string ShowKeyed(const std::string& key, double value);

// The documents of docs/hw.md. SI numbers, no path.
nlohmann::ordered_json HwListJson(const Catalogue& catalogue);
nlohmann::ordered_json HwShowJson(const Catalogue& catalogue, const Accelerator& accelerator);
nlohmann::ordered_json HwShowJson(const Fabric& fabric);
nlohmann::ordered_json HwDiffJson(const Accelerator& a, const Accelerator& b,
                                  const std::vector<HardwareDifference>& rows);

}  // namespace portolan
