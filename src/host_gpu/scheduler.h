#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/emu/fiber.h"
#include "host_gpu/place.h"
#include "portolan_gpu/core.h"

namespace portolan::gpu {

inline constexpr int kMaxWave = 64;
inline constexpr unsigned kMaxBlockThreads = 1024;  // of every GPU that we know

struct Block;

struct Wave {
  Block* block = nullptr;
  uint64_t ready = 0;    // lanes that can run
  uint64_t parked = 0;   // of them, those that wait for somebody else to do something
  uint64_t waiting = 0;  // lanes at an exchange
  uint64_t barrier = 0;  // lanes at the block's or the grid's barrier
  uint64_t exited = 0;
  uint64_t active = 0;  // lanes of the exchange carried out last
  int32_t epoch = 0;    // exchanges carried out that order memory
  int first = 0;        // index in the block of lane 0
  std::array<uint64_t, kMaxWave> operand{};
  std::array<uint64_t, kMaxWave> settled{};
};

struct WorkItem {
  WorkItem(void (*entry)(), int color, size_t stack_bytes) : fiber(entry, color, stack_bytes) {}

  device::emu::Fiber fiber;
  uint3 thread{};
  int index = 0;  // in its block
  unsigned lane = 0;
  Wave* wave = nullptr;
  const void* base_frame = nullptr;
  Place place;  // where it waits
  const char* operation = nullptr;
  uint64_t mask = 0;
  bool orders_memory = false;
  bool in_step = false;  // volatile accesses or fences keep its lanes in step: its next write waits for their reads
  bool at_grid_barrier = false;
  int spins = 0;
};

struct Block {
  uint3 index{};
  int64_t number = 0;
  bool resident = false;
  int slot = 0;       // of its shared memory
  int64_t epoch = 0;  // barriers passed, over all blocks so far
  int64_t start_epoch = 0;
  uint64_t launch = 0;  // for which its work-items are numbered
  int votes = 0;        // at the barrier that is being gathered
  int vote_result = 0;  // of the one passed last
  std::vector<Wave> waves;
  std::vector<std::unique_ptr<WorkItem>> items;
};

// In which order the waves of a launch run.
struct Schedule {
  uint64_t seed = 0;  // 0: a wave runs until it must wait, block after block; else waves of several blocks take turns
                      // at random
};

// Runs kernels on the CPU, a fiber for each work-item, on the calling thread. What it has in common with
// device::emu::Emulator is the fiber and how waves meet; what differs is that it knows nothing of a kernel but its
// machine code: lanes meet at return addresses, barriers may leave out work-items that have returned, several blocks
// can be resident, and waits by spinning end.
class Scheduler {
 public:
  static Scheduler& Get() {
    static auto* scheduler = new Scheduler;  // never destroyed: statics of the program may launch at exit
    return *scheduler;
  }

  int Run(const LaunchSpec& launch);
  static bool running() { return current_ != nullptr; }
  const LaunchSpec& launch() const { return *launch_; }
  uint64_t launch_number() const { return launch_number_; }
  static WorkItem& current() { return *current_; }
  static Block& block() { return *current_->wave->block; }

  // Called from the entry points of core.h, whose frame is `frame`.
  const Wave& Meet(const char* operation, uint64_t mask, uint64_t operand, bool orders_memory, const void* frame);
  int BlockBarrier(int vote, const void* frame);
  void GridBarrier(const void* frame);
  // A work-item that spins lets others go first.
  void Spin(const void* frame, int weight);

 private:
  static void RunWorkItem();
  void StartBlock(Block& block);
  bool NextBlock();
  void Stop();
  WorkItem* Pick();
  WorkItem* PickIn(Wave& wave);
  bool Release();
  bool SettlesWithoutSpinners(Wave& wave);
  bool ReleaseBlock(Block& block);
  void Settle(Wave& wave);
  void CheckBarrierPlaces(const Block& block);
  void Resume(WorkItem* next);
  [[noreturn]] void ReportLivelock();
  uint64_t Random();
  WorkItem& Item(const Wave& wave, int lane) const {
    return *wave.block->items[static_cast<size_t>(wave.first + lane)];
  }

  device::emu::Fiber thread_;
  const LaunchSpec* launch_ = nullptr;
  uint64_t launch_number_ = 0;
  static inline constinit WorkItem* current_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;  // resident ones; kept for the next launch
  size_t resident_ = 0;                         // blocks in use
  size_t running_block_ = 0;
  size_t running_wave_ = 0;
  uint64_t next_block_ = 0;
  uint64_t block_count_ = 0;
  unsigned threads_ = 0;
  unsigned wave_size_ = 32;
  size_t waves_ = 0;  // of a block
  int64_t epoch_ = 0;
  uint64_t random_ = 0;
  int64_t spins_without_progress_ = 0;
  double progress_time_ = 0;
};

}  // namespace portolan::gpu
