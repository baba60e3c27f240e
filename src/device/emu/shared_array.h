#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "device/emu/emulator.h"
#include "device/vec.h"

namespace portolan::device::emu {

// What the emulator remembers of one shared element: its last write and two of the readers since. With more than two
// readers in one epoch, of which some are ordered by wave barriers, a race can go unreported; one reported is one.
struct ElementHistory {
  Access write;
  Access reads[2];
};

// An index that knows the line where it was written.
struct SharedIndex {
  SharedIndex(int64_t index, const char* in_file = __builtin_FILE(),
              int in_line = __builtin_LINE())  // NOLINT: implicit
      : value(index), where{in_file, in_line} {}
  int64_t value;
  SourceLine where;
};

// An array in shared memory (LDS) as the emulator sees it. On a GPU it is a plain array.
template <typename T, int kCount>
class SharedArray {
 public:
  // Stands for an element until it is read or written.
  class Element {
   public:
    Element(SharedArray& array, SharedIndex index) : array_(array), index_(index) {}
    operator T() const { return array_.Read(index_); }  // NOLINT: implicit, as for an element of an array
    Element& operator=(T value) {
      array_.Write(index_, value);
      return *this;
    }
    Element& operator=(const Element& other) { return *this = static_cast<T>(other); }
    Element(const Element&) = default;
    Element& operator+=(T value) { return *this = static_cast<T>(static_cast<T>(*this) + value); }

   private:
    SharedArray& array_;
    SharedIndex index_;
  };

  Element operator[](SharedIndex index) { return Element(*this, index); }

  // kWidth elements at once; index must be a multiple of kWidth.
  template <int kWidth>
  Vec<T, kWidth> LoadVec(SharedIndex index) {
    CheckAligned<kWidth>(index);
    Vec<T, kWidth> vec;
    for (int i = 0; i < kWidth; ++i) vec.value[i] = Read({index.value + i, index.where.file, index.where.line});
    return vec;
  }
  template <int kWidth>
  void StoreVec(SharedIndex index, const Vec<T, kWidth>& vec) {
    CheckAligned<kWidth>(index);
    for (int i = 0; i < kWidth; ++i) Write({index.value + i, index.where.file, index.where.line}, vec.value[i]);
  }

  // Returns the value before.
  T AtomicAdd(SharedIndex index, T addend) {
    if (!InRange(index)) return T{};
    ElementHistory& history = history_[index.value];
    Access now = Emulator::Running().CurrentAccess(true, index.where.line);
    Check(history.write, now, index, "written");
    Check(history.reads[0], now, index, "read");
    Check(history.reads[1], now, index, "read");
    CheckInitialised(history, index);
    history.write = now;
    T before = data_[index.value];
    data_[index.value] = static_cast<T>(before + addend);
    return before;
  }

 private:
  friend class Element;

  T Read(const SharedIndex& index) {
    if (!InRange(index)) return T{};
    ElementHistory& history = history_[index.value];
    Access now = Emulator::Running().CurrentAccess(false, index.where.line);
    Check(history.write, now, index, "written");
    CheckInitialised(history, index);
    Access& first = history.reads[0];
    bool replace_first = first.epoch != now.epoch || first.work_item == now.work_item;
    (replace_first ? first : history.reads[1]) = now;
    return data_[index.value];
  }

  void Write(const SharedIndex& index, T value) {
    if (!InRange(index)) return;
    ElementHistory& history = history_[index.value];
    Access now = Emulator::Running().CurrentAccess(false, index.where.line);
    Check(history.write, now, index, "written");
    Check(history.reads[0], now, index, "read");
    Check(history.reads[1], now, index, "read");
    history.write = now;
    data_[index.value] = value;
  }

  bool InRange(const SharedIndex& index) {
    if (index.value >= 0 && index.value < kCount) return true;
    Emulator::Running().Report(FaultKind::kSharedOutOfRange, index.where,
                               fmt::format("element {} of an array of {}", index.value, kCount));
    return false;
  }

  template <int kWidth>
  void CheckAligned(const SharedIndex& index) {
    if (index.value % kWidth == 0) return;
    Emulator::Running().Report(FaultKind::kMisalignedAccess, index.where,
                               fmt::format("{} elements from element {}", kWidth, index.value));
  }

  void Check(const Access& before, const Access& now, const SharedIndex& index, const char* verb) {
    if (before.epoch != now.epoch || before.work_item == now.work_item || (before.atomic && now.atomic)) return;
    Emulator& emulator = Emulator::Running();
    if (before.wave_epoch != now.wave_epoch && emulator.InSameWave(before.work_item, now.work_item)) return;
    emulator.Report(
        FaultKind::kSharedRace, index.where,
        fmt::format("element {} was {} by work-item {} at line {}", index.value, verb, before.work_item, before.line));
  }

  void CheckInitialised(const ElementHistory& history, const SharedIndex& index) {
    Emulator& emulator = Emulator::Running();
    if (history.write.epoch >= emulator.block_start_epoch()) return;
    emulator.Report(FaultKind::kSharedUninitialised, index.where,
                    fmt::format("nobody of this block has written element {}", index.value));
  }

  T data_[kCount] = {};
  ElementHistory history_[kCount];
};

}  // namespace portolan::device::emu
