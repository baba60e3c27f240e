#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/emu/fault.h"
#include "device/emu/fiber.h"

namespace portolan::device::emu {

inline constexpr int kMaxWaveSize = 64;
inline constexpr int kMaxBlockThreads = 1024;  // of every GPU that we know

struct Dim3 {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
};

// One launch: body(argument) is called once for each work-item of each block.
struct Launch {
  const char* kernel = "";
  Dim3 grid;
  int threads = 1;    // work-items a block, 1..1024
  int wave_size = 0;  // 32 or 64
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
};

// What the lanes of a wave do together. Lanes that wait at the same line for the same operation take part in one.
enum class WaveOperation : int { kNone, kShuffle, kBallot, kSync };

// Who touched a shared element last, and when.
struct Access {
  int64_t epoch = 0;       // number of barriers passed by the blocks so far
  int32_t wave_epoch = 0;  // number of wave barriers passed by the work-item's wave
  int16_t work_item = -1;
  bool atomic = false;
  int line = 0;
};

struct Wave {
  uint64_t ready = 0;    // lanes that can run
  uint64_t waiting = 0;  // lanes at a wave operation
  uint64_t barrier = 0;  // lanes at a block barrier
  uint64_t exited = 0;
  uint64_t active = 0;  // lanes of the wave operation carried out last
  uint64_t ballot = 0;  // and the votes among them
  int32_t epoch = 0;
  int first = 0;                                 // work-item of lane 0
  std::array<uint64_t, kMaxWaveSize> operand{};  // as deposited
  std::array<uint64_t, kMaxWaveSize> settled{};  // as of the operation carried out last
};

struct WorkItem {
  WorkItem(void (*entry)(), int index_in_block) : fiber(entry, index_in_block), index(index_in_block) {}

  Fiber fiber;
  int index;
  int lane = 0;
  Wave* wave = nullptr;
  SourceLine where;  // the rendezvous at which it waits
  WaveOperation operation = WaveOperation::kNone;
  int group_lanes = 0;
};

struct Statistics {
  int64_t work_items = 0;       // started
  int64_t wave_operations = 0;  // counted once for each lane
  int64_t barriers = 0;         // likewise

  int64_t Steps() const { return work_items + wave_operations + barriers; }
};

// Runs kernels on the CPU, a fiber for each work-item, with true waves of 32 or 64 lanes.
//
// A work-item runs until it has to meet others. When every lane of a wave waits (or has exited), the lanes that wait at
// the smallest line of the source go on: so the lanes of a divergent branch meet each other inside it and the rest
// behind it, as under an execution mask. What this order does not model: a `continue` in front of a wave operation of
// a loop lets its lanes run ahead into the next iteration; write an `if`.
//
// Blocks run one after the other on the calling thread, work-items of a block in turns; a kernel that waits in a loop
// for another block or work-item never ends.
class Emulator {
 public:
  // Each thread has its own, with its own stacks.
  static Emulator& OfThisThread();

  // Runs the launch to its end, or to its first barrier divergence. Faults go to the thread's FaultRecorder; without
  // one they are printed and the program aborts.
  void Run(const Launch& launch);

  // The emulator whose work-item is running on this thread. The following serve the intrinsics, within a kernel only.
  static Emulator& Running() { return *running_; }
  int work_item() const { return current_->index; }
  int lane() const { return current_->lane; }
  const Dim3& block() const { return block_; }
  const Launch& launch() const { return *launch_; }
  // Waits for all work-items of the block.
  void BlockBarrier(SourceLine where);
  // Waits for the lanes that reach this operation; afterwards the current wave has `settled`, `active` and `ballot`.
  // The lanes of each aligned group of `group_lanes` must arrive together or have exited; 0 asks for nothing.
  const Wave& Rendezvous(WaveOperation operation, uint64_t operand, int group_lanes, SourceLine where);
  // `value` as lane `source` of the current wave deposited it.
  uint64_t Shuffle(uint64_t value, int source, int group_lanes, SourceLine where);
  Access CurrentAccess(bool atomic, int line) const {
    return {epoch_, current_->wave->epoch, static_cast<int16_t>(current_->index), atomic, line};
  }
  bool InSameWave(int work_item_a, int work_item_b) const {
    return work_item_a / launch_->wave_size == work_item_b / launch_->wave_size;
  }
  int64_t block_start_epoch() const { return block_start_epoch_; }
  void Report(FaultKind kind, SourceLine where, std::string detail);

  const Statistics& statistics() const { return statistics_; }
  FaultRecorder* recorder() const { return recorder_; }
  void set_recorder(FaultRecorder* recorder) { recorder_ = recorder; }

 private:
  enum class BlockEnd { kFinished, kDiverged };

  static void RunWorkItem();
  BlockEnd RunBlock();
  bool BarrierDiverges();
  void Stop();
  void Settle(Wave& wave);
  void CheckGroups(const Wave& wave, int lane, uint64_t active);
  WorkItem& ItemOf(const Wave& wave, int lane) { return *work_items_[static_cast<size_t>(wave.first + lane)]; }

  static constinit thread_local Emulator* running_;

  Fiber thread_;
  WorkItem* current_ = nullptr;
  const Launch* launch_ = nullptr;
  Dim3 block_;
  int64_t epoch_ = 0;
  int64_t block_start_epoch_ = 0;
  size_t wave_count_ = 0;
  size_t running_wave_ = 0;
  std::vector<std::unique_ptr<WorkItem>> work_items_;
  std::vector<Wave> waves_;
  Statistics statistics_;
  FaultRecorder* recorder_ = nullptr;
};

// Reports an address that is no multiple of `bytes`, a power of two.
inline void CheckAlignment(const void* address, std::size_t bytes, SourceLine where) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  Emulator::Running().Report(FaultKind::kMisalignedAccess, where,
                             "the address is no multiple of " + std::to_string(bytes) + " bytes");
}

}  // namespace portolan::device::emu
