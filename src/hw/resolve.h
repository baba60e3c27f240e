#pragma once

#include <map>
#include <string>
#include <vector>

#include "hw/accelerator.h"

namespace portolan {

// Fills what the files of `ids` leave out, and notes each in Accelerator::inherited.
//
// A value is the median, over the nearest relatives whose files state it, of its ratio to the quantity that it scales
// with (table in resolve.cc), times that quantity of the accelerator. Nearest: same family; where none states it, same
// vendor; else all. A CPU is related to CPUs only. An even number of relatives takes the mean of the middle two.
// Inherited values are never inherited again. Further rules, in order:
//   - fp16 and bf16 stand in for each other, fp8_e4m3 and fp8_e5m2 too, in peak and sustained matrix rates;
//   - the sustained share of a number format that neither family nor vendor states is the device's own: that of
//   fp8_e4m3
//     for the fp8 and mx formats, else that of bf16;
//   - mall_bytes comes from the same family only (most devices have no memory-side cache);
//   - fabrics: those of the family, else the vendor's current generation (nvidia nvlink5, amd xgmi_mi350, cpu cpu_node,
//     others pcie_gen5) and nic_400g (cpu ethernet_25g).
// Without any relative the fallbacks of the table hold.
void ResolveAccelerators(const std::vector<std::string>& ids, std::map<std::string, Accelerator>* accelerators);

}  // namespace portolan
