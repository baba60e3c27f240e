#include "device/emu/fault.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/emu/emulator.h"

namespace portolan::device::emu {

const char* FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kBarrierDivergence:
      return "barrier divergence";
    case FaultKind::kWaveDivergence:
      return "divergent wave operation";
    case FaultKind::kInactiveLaneRead:
      return "read of an inactive lane";
    case FaultKind::kSharedRace:
      return "shared-memory race";
    case FaultKind::kSharedOutOfRange:
      return "shared memory out of range";
    case FaultKind::kSharedUninitialised:
      return "read of uninitialised shared memory";
    case FaultKind::kMisalignedAccess:
      return "misaligned vector access";
  }
  return "unknown fault";
}

std::string FormatFault(const Fault& fault) {
  std::string times = fault.count > 1 ? fmt::format(" ({} times)", fault.count) : "";
  return fmt::format("{}:{}: {}: {}: block {}, work-item {}: {}{}", fault.where.file, fault.where.line, fault.kernel,
                     FaultKindName(fault.kind), fault.block, fault.work_item, fault.detail, times);
}

FaultRecorder::FaultRecorder() : outer_(Emulator::OfThisThread().recorder()) {
  Emulator::OfThisThread().set_recorder(this);
}

FaultRecorder::~FaultRecorder() { Emulator::OfThisThread().set_recorder(outer_); }

int FaultRecorder::Count(FaultKind kind) const {
  return static_cast<int>(
      std::count_if(faults_.begin(), faults_.end(), [kind](const Fault& fault) { return fault.kind == kind; }));
}

}  // namespace portolan::device::emu
