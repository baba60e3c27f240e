#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace portolan::device::emu {

// A place in a kernel's source. `file` is a string literal (__builtin_FILE()), never freed.
struct SourceLine {
  const char* file = "";
  int line = 0;

  // As a default argument: the place of the call.
  static constexpr SourceLine Here(const char* in_file = __builtin_FILE(), int in_line = __builtin_LINE()) {
    return {in_file, in_line};
  }

  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

// What a kernel did that a GPU does not define, or defines otherwise on another wave size.
enum class FaultKind {
  kBarrierDivergence,    // a block barrier that some work-items have left behind (exited) or wait for elsewhere
  kWaveDivergence,       // a wave operation that a part of its group of lanes does not take part in
  kInactiveLaneRead,     // a shuffle from a lane that does not take part, or that does not exist
  kSharedRace,           // two work-items, one shared element, no barrier between, at least one plain write
  kSharedOutOfRange,     // an index outside a shared array
  kSharedUninitialised,  // a read of a shared element that nobody of this block has written
  kMisalignedAccess,     // a vector load or store at an address that is no multiple of its width
};

// Short name of a kind, for example "shared-memory race".
const char* FaultKindName(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kBarrierDivergence;
  std::string kernel;
  int64_t block = 0;
  int work_item = 0;
  SourceLine where;
  std::string detail;  // for example "element 3 was written by work-item 7 at line 21"
  int64_t count = 1;   // how often this kind was met at this line
};

// One line: "file:line: kernel: shared-memory race: block 0, work-item 1: detail (4 times)".
std::string FormatFault(const Fault& fault);

// While one lives, the faults of launches on its thread are collected in it; without one, a fault is a bug of our own:
// the launch prints its faults and aborts. Recorders nest; the innermost collects.
class FaultRecorder {
 public:
  FaultRecorder();
  ~FaultRecorder();
  FaultRecorder(const FaultRecorder&) = delete;
  FaultRecorder& operator=(const FaultRecorder&) = delete;

  // One entry for each kind and line, in the order met.
  const std::vector<Fault>& faults() const { return faults_; }
  // How many entries have this kind.
  int Count(FaultKind kind) const;

 private:
  friend class Emulator;
  std::vector<Fault> faults_;
  FaultRecorder* outer_;
};

}  // namespace portolan::device::emu
