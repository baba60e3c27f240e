#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "hw/fabric.h"

namespace portolan {

// One property in which two accelerators differ, read as a move from A to B.
struct HardwareDifference {
  std::string quantity;  // "HBM capacity"
  std::string value_a;   // formatted with its unit
  std::string value_b;
  bool inherited_a = false;  // the chip's file does not state it: taken from its relatives
  bool inherited_b = false;
  double ratio = 0;    // B / A; 0 when the property is not a number or one side has none
  double weight = 0;   // rank: importance x |ln ratio|, or a fixed weight where there is no ratio
  std::string allows;  // what the difference means for training, in words
};

// The differences that matter to training, weightiest first: capacity, bandwidth, matrix rate by number format, machine
// balance (sustained bf16 flops a byte of sustained HBM traffic), scale-up rate and topology, shared memory, wave
// size, caches, fixed cost of a kernel, power. A ratio of something that every step feels weighs more than the same
// ratio of a detail (diff.cc). Ratios within kSameRatio of 1 are left out. Equal weights keep the order of this list.
std::vector<HardwareDifference> DiffAccelerators(const Accelerator& a, const Fabric& scale_up_a, const Accelerator& b,
                                                 const Fabric& scale_up_b);

constexpr double kSameRatio = 0.05;

}  // namespace portolan
