#include "host_gpu/scheduler.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "host_gpu/device_memory.h"
#include "host_gpu/session.h"
#include "host_gpu/shared_memory.h"

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim;
dim3 gridDim;

namespace portolan::gpu {
namespace {

constexpr size_t kStackBytes = size_t{512} * 1024;    // of a work-item; only what it touches is taken
constexpr size_t kTurnBlocks = 4;                     // resident blocks whose waves take turns
constexpr size_t kMaxResidentItems = 28000;           // two mappings each, of the 65530 that Linux gives
constexpr int kSpinsBeforeYield = 64;                 // volatile reads or atomics without meeting anybody
constexpr int64_t kYieldsBeforeLivelock = 1'000'000;  // and
constexpr double kSecondsBeforeLivelock = 5;          // without any work-item that met another or returned

uint64_t Bit(unsigned lane) { return uint64_t{1} << lane; }
uint64_t LowBits(unsigned count) { return count >= 64 ? ~uint64_t{0} : Bit(count) - 1; }

}  // namespace

int Scheduler::Run(const LaunchSpec& launch) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  constexpr int kInvalidConfiguration = 9;
  if (threads == 0 || threads > kMaxBlockThreads || blocks == 0 || launch.grid.x > 0x7fffffffu ||
      launch.grid.y > 65535 || launch.grid.z > 65535 || launch.block.z > 64) {
    return kInvalidConfiguration;
  }
  Session& session = Session::Get();
  if (running()) Unsupported("a launch from device code");
  launch_ = &launch;
  ++launch_number_;
  session.BeforeLaunch(launch);
  threads_ = static_cast<unsigned>(threads);
  wave_size_ = static_cast<unsigned>(session.wave_size());
  waves_ = (threads + wave_size_ - 1) / wave_size_;
  block_count_ = blocks;
  next_block_ = 0;
  random_ = session.schedule().seed * 0x9e3779b97f4a7c15u + launch_number_;
  size_t residents = session.schedule().seed == 0 ? 1 : kTurnBlocks;
  if (launch.cooperative) residents = blocks;
  if (residents * threads > kMaxResidentItems) {
    if (launch.cooperative) Unsupported("a cooperative launch of more than 28000 work-items");
    residents = 1;
  }
  resident_ = std::min<size_t>(residents, blocks);
  SharedMemory::Get().StartLaunch(launch.dynamic_shared_bytes, resident_);
  blockDim = launch.block;
  gridDim = launch.grid;
  while (blocks_.size() < resident_) blocks_.push_back(std::make_unique<Block>());
  for (size_t i = 0; i < resident_; ++i) {
    blocks_[i]->slot = static_cast<int>(i);
    blocks_[i]->number = static_cast<int64_t>(next_block_++);
    StartBlock(*blocks_[i]);
  }
  running_block_ = running_wave_ = 0;
  spins_without_progress_ = 0;
  progress_time_ = RealSeconds();
  if (WorkItem* first = Pick(); first != nullptr) {
    current_ = first;
    threadIdx = first->thread;
    blockIdx = first->wave->block->index;
    device::emu::Fiber::Switch(thread_, first->fiber);
  }
  current_ = nullptr;
  SharedMemory::Get().EndLaunch(launch);
  launch_ = nullptr;
  session.AfterLaunch(launch);
  return 0;
}

void Scheduler::StartBlock(Block& block) {
  const auto number = static_cast<uint64_t>(block.number);
  block.index = {static_cast<unsigned>(number % launch_->grid.x),
                 static_cast<unsigned>(number / launch_->grid.x % launch_->grid.y),
                 static_cast<unsigned>(number / launch_->grid.x / launch_->grid.y)};
  block.resident = true;
  block.start_epoch = block.epoch = ++epoch_;
  block.votes = 0;
  if (block.waves.size() < waves_) block.waves.resize(waves_);
  while (block.items.size() < threads_) {
    block.items.push_back(std::make_unique<WorkItem>(&RunWorkItem, static_cast<int>(block.items.size()), kStackBytes));
  }
  for (size_t w = 0; w < waves_; ++w) {
    Wave& wave = block.waves[w];
    wave.block = &block;
    wave.first = static_cast<int>(w) * static_cast<int>(wave_size_);
    wave.ready = LowBits(std::min<unsigned>(wave_size_, threads_ - static_cast<unsigned>(wave.first)));
    wave.parked = wave.waiting = wave.barrier = wave.exited = 0;
  }
  for (unsigned i = 0; i < threads_; ++i) {
    WorkItem& item = *block.items[i];
    item.in_step = false;
    item.at_grid_barrier = false;
    item.spins = 0;
  }
  if (block.launch != launch_number_) {
    block.launch = launch_number_;
    uint3 thread{};
    for (unsigned i = 0; i < threads_; ++i) {
      WorkItem& item = *block.items[i];
      item.index = static_cast<int>(i);
      item.lane = i % wave_size_;
      item.wave = &block.waves[i / wave_size_];
      item.thread = thread;
      if (++thread.x < launch_->block.x) continue;
      thread.x = 0;
      if (++thread.y < launch_->block.y) continue;
      thread.y = 0;
      ++thread.z;
    }
  }
  SharedMemory::Get().StartBlock(block.slot);
}

// The block of running_block_ is done: its place goes to the next one of the grid, or falls free.
bool Scheduler::NextBlock() {
  Block& block = *blocks_[running_block_];
  block.resident = false;
  if (next_block_ >= block_count_) return false;
  block.number = static_cast<int64_t>(next_block_++);
  StartBlock(block);
  running_wave_ = 0;
  return true;
}

void Scheduler::RunWorkItem() {
  Scheduler& scheduler = Get();
  WorkItem& self = *scheduler.current_;
  self.base_frame = __builtin_frame_address(0);
  for (;;) {
    scheduler.launch_->body(scheduler.launch_->argument);
    self.wave->ready &= ~Bit(self.lane);
    self.wave->exited |= Bit(self.lane);
    scheduler.spins_without_progress_ = 0;
    scheduler.Stop();
  }
}

uint64_t Scheduler::Random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

// The current work-item cannot go on, or shall not: runs others until it may.
void Scheduler::Stop() { Resume(Pick()); }

void Scheduler::Resume(WorkItem* next) {
  WorkItem& self = *current_;
  if (next == &self) return;
  if (next == nullptr) {
    device::emu::Fiber::Switch(self.fiber, thread_);
    return;
  }
  current_ = next;
  threadIdx = next->thread;
  blockIdx = next->wave->block->index;
  device::emu::Fiber::Switch(self.fiber, next->fiber);
}

// A lane of `wave` that can run; nullptr when none can before others have run.
WorkItem* Scheduler::PickIn(Wave& wave) {
  uint64_t runnable = wave.ready & ~wave.parked;
  if (runnable == 0 && wave.ready == 0 && wave.waiting != 0) {
    Settle(wave);
    runnable = wave.ready;
  }
  return runnable == 0 ? nullptr : &Item(wave, std::countr_zero(runnable));
}

// The next work-item of the launch; nullptr when all have returned.
WorkItem* Scheduler::Pick() {
  for (;;) {
    Block* block = blocks_[running_block_].get();
    if (block->resident) {
      Wave* wave = &block->waves[running_wave_];
      if (Session::Get().schedule().seed != 0 && (Random() & 3) == 0) {
        Block& other = *blocks_[Random() % resident_];
        if (other.resident) {
          running_block_ = static_cast<size_t>(other.slot);
          running_wave_ = Random() % waves_;
          block = &other;
          wave = &other.waves[running_wave_];
        }
      }
      if (WorkItem* item = PickIn(*wave); item != nullptr) return item;
      for (size_t step = 1; step < waves_; ++step) {
        const size_t at = (running_wave_ + step) % waves_;
        if (WorkItem* item = PickIn(block->waves[at]); item != nullptr) {
          running_wave_ = at;
          return item;
        }
      }
      if (ReleaseBlock(*block)) continue;
      uint64_t left = 0;
      for (size_t w = 0; w < waves_; ++w) {
        left |= block->waves[w].ready | block->waves[w].waiting | block->waves[w].barrier;
      }
      if (left == 0 && NextBlock()) continue;
    }
    // Nothing in this block: another resident one.
    bool found = false;
    for (size_t step = 1; step < resident_ && !found; ++step) {
      const size_t at = (running_block_ + step) % resident_;
      Block& other = *blocks_[at];
      if (!other.resident) continue;
      for (size_t w = 0; w < waves_ && !found; ++w) {
        if (PickIn(other.waves[w]) != nullptr) {
          running_block_ = at;
          running_wave_ = w;
          found = true;
        }
      }
      if (!found && ReleaseBlock(other)) {
        running_block_ = at;
        running_wave_ = 0;
        found = true;
      }
    }
    if (found) continue;
    if (Release()) continue;
    return nullptr;
  }
}

// The lanes that wait, when those that do not come spin: on lanes for which these hold a lock, perhaps. A branch's
// lanes go on without the others on the hardware too. Lanes that are named must come.
bool Scheduler::SettlesWithoutSpinners(Wave& wave) {
  if (wave.parked == 0 || wave.waiting == 0 || (wave.ready & ~wave.parked) != 0) return false;
  for (uint64_t rest = wave.waiting; rest != 0; rest &= rest - 1) {
    if (Item(wave, std::countr_zero(rest)).mask != 0) return false;
  }
  Settle(wave);
  return true;
}

// Nobody can run. The grid's barrier opens when all stand at it; else those that spin get another turn.
bool Scheduler::Release() {
  bool parked = false;
  bool settled = false;
  bool at_grid = false;
  for (size_t i = 0; i < resident_; ++i) {
    if (!blocks_[i]->resident) continue;
    for (size_t w = 0; w < waves_; ++w) {
      Wave& wave = blocks_[i]->waves[w];
      parked = parked || wave.parked != 0;
      at_grid = at_grid || wave.barrier != 0;
      settled = SettlesWithoutSpinners(wave) || settled;
      wave.parked = 0;
    }
  }
  if (settled) return true;
  if (parked) {
    // A block that waits for one that has not begun: a GPU would have both.
    if (next_block_ < block_count_ && (resident_ + 1) * threads_ <= kMaxResidentItems) {
      if (blocks_.size() == resident_) blocks_.push_back(std::make_unique<Block>());
      Block& block = *blocks_[resident_];
      block.slot = static_cast<int>(resident_++);
      block.number = static_cast<int64_t>(next_block_++);
      SharedMemory::Get().AddSlots(resident_);
      StartBlock(block);
      return true;
    }
    if (spins_without_progress_ > kYieldsBeforeLivelock && RealSeconds() - progress_time_ > kSecondsBeforeLivelock) {
      ReportLivelock();
    }
    return true;
  }
  if (!at_grid) return false;
  ++epoch_;
  for (size_t i = 0; i < resident_; ++i) {
    if (!blocks_[i]->resident) continue;
    blocks_[i]->epoch = epoch_;
    for (size_t w = 0; w < waves_; ++w) {
      Wave& wave = blocks_[i]->waves[w];
      wave.ready = wave.barrier;
      wave.barrier = 0;
    }
    for (auto& item : blocks_[i]->items) item->at_grid_barrier = false;
  }
  return true;
}

// Opens the barrier of a block at which all of its work-items stand that have not returned.
bool Scheduler::ReleaseBlock(Block& block) {
  bool any = false;
  for (size_t w = 0; w < waves_; ++w) {
    const Wave& wave = block.waves[w];
    if (wave.ready != 0 || wave.waiting != 0) return false;
    any = any || wave.barrier != 0;
  }
  if (!any) return false;
  bool all_at_grid = true;
  for (unsigned i = 0; i < threads_; ++i) {
    const WorkItem& item = *block.items[i];
    if ((item.wave->barrier & Bit(item.lane)) != 0 && !item.at_grid_barrier) all_at_grid = false;
  }
  if (all_at_grid) return false;
  CheckBarrierPlaces(block);
  block.epoch = ++epoch_;
  block.vote_result = block.votes;
  block.votes = 0;
  for (size_t w = 0; w < waves_; ++w) {
    Wave& wave = block.waves[w];
    wave.ready = wave.barrier;
    wave.barrier = 0;
  }
  spins_without_progress_ = 0;
  running_wave_ = Session::Get().schedule().seed == 0 ? 0 : Random() % waves_;
  return true;
}

// Lanes of one wave at different barriers: the hardware counts waves, so that one of them would pass twice.
void Scheduler::CheckBarrierPlaces(const Block& block) {
  for (size_t w = 0; w < waves_; ++w) {
    const Wave& wave = block.waves[w];
    if (wave.barrier == 0) continue;
    const WorkItem& first = Item(wave, std::countr_zero(wave.barrier));
    for (uint64_t rest = wave.barrier; rest != 0; rest &= rest - 1) {
      const WorkItem& item = Item(wave, std::countr_zero(rest));
      if (item.place == first.place) continue;
      Session::Get().Report({"barrier-divergence", block.number, item.index, item.place, &first.place,
                             "lanes " + std::to_string(first.lane) + " and " + std::to_string(item.lane) +
                                 " of a wave wait at different barriers"});
      break;
    }
  }
}

// Carries out one exchange among the waiting lanes of a wave in which nobody can run. Those that come first in the
// program go first, so that the lanes of a branch meet inside it and all behind it; but an exchange that names its
// lanes and has them all goes before one that lacks some.
void Scheduler::Settle(Wave& wave) {
  const WorkItem* chosen = nullptr;
  bool chosen_complete = false;
  for (uint64_t rest = wave.waiting; rest != 0; rest &= rest - 1) {
    const WorkItem& item = Item(wave, std::countr_zero(rest));
    if (chosen != nullptr && item.place == chosen->place && item.mask == chosen->mask) continue;
    uint64_t here = 0;
    for (uint64_t other = wave.waiting; other != 0 && item.mask != 0; other &= other - 1) {
      const WorkItem& candidate = Item(wave, std::countr_zero(other));
      if (candidate.place == item.place) here |= Bit(candidate.lane);
    }
    const bool complete = (item.mask & ~(here | wave.exited)) == 0;
    if (chosen == nullptr || (complete && !chosen_complete) ||
        (complete == chosen_complete && item.place < chosen->place)) {
      chosen = &item;
      chosen_complete = complete;
    }
  }
  uint64_t active = 0;
  uint64_t named = 0;
  for (uint64_t rest = wave.waiting; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const WorkItem& item = Item(wave, lane);
    if (item.operation != chosen->operation || !(item.place == chosen->place)) continue;
    active |= Bit(item.lane);
    named |= item.mask;
    wave.settled[static_cast<size_t>(lane)] = wave.operand[static_cast<size_t>(lane)];
  }
  // The compiler may have made two places of one: lanes that name each other in the same operation belong together.
  const uint64_t present = wave.waiting | wave.barrier | wave.ready;
  uint64_t missing = named & present & ~active;
  for (uint64_t rest = missing & wave.waiting; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const WorkItem& item = Item(wave, lane);
    if (item.operation != chosen->operation || item.mask != chosen->mask) continue;
    active |= Bit(item.lane);
    wave.settled[static_cast<size_t>(lane)] = wave.operand[static_cast<size_t>(lane)];
  }
  missing &= ~active;
  wave.active = active;
  if (chosen->orders_memory) ++wave.epoch;
  wave.waiting &= ~active;
  wave.ready |= active;
  spins_without_progress_ = 0;
  if (missing != 0) {
    const WorkItem& absent = Item(wave, std::countr_zero(missing));
    Session::Get().Report(
        {"wave-divergence", wave.block->number, chosen->index, chosen->place, &absent.place,
         std::string(chosen->operation) + " names lane " + std::to_string(absent.lane) + ", which waits elsewhere"});
  }
}

const Wave& Scheduler::Meet(const char* operation, uint64_t mask, uint64_t operand, bool orders_memory,
                            const void* frame) {
  WorkItem& self = *current_;
  self.operation = operation;
  self.mask = mask;
  self.orders_memory = orders_memory;
  self.spins = 0;
  CapturePlace(frame, self.base_frame, &self.place);
  if (mask != 0 && (mask & Bit(self.lane)) == 0) {
    Session::Get().Report(
        {"wave-divergence", self.wave->block->number, self.index, self.place, nullptr,
         std::string(operation) + ": the mask does not name lane " + std::to_string(self.lane) + ", which calls it"});
  }
  self.wave->operand[self.lane] = operand;
  self.wave->waiting |= Bit(self.lane);
  self.wave->ready &= ~Bit(self.lane);
  Stop();
  return *self.wave;
}

int Scheduler::BlockBarrier(int vote, const void* frame) {
  WorkItem& self = *current_;
  CapturePlace(frame, self.base_frame, &self.place);
  self.spins = 0;
  self.in_step = false;  // the barrier orders what went before
  Block& block = *self.wave->block;
  block.votes += vote;
  self.wave->barrier |= Bit(self.lane);
  self.wave->ready &= ~Bit(self.lane);
  Stop();
  return block.vote_result;
}

void Scheduler::GridBarrier(const void* frame) {
  if (!launch_->cooperative) Unsupported("a grid-wide barrier in a launch that is not cooperative");
  current_->at_grid_barrier = true;
  BlockBarrier(0, frame);
}

void Scheduler::Spin(const void* frame, int weight) {
  WorkItem& self = *current_;
  self.spins += weight;
  if (self.spins < kSpinsBeforeYield) return;
  self.spins = 0;
  if (spins_without_progress_++ == 0) progress_time_ = RealSeconds();
  CapturePlace(frame, self.base_frame, &self.place);
  self.wave->parked |= Bit(self.lane);
  Stop();
}

void Scheduler::ReportLivelock() {
  Session::Get().Report(
      {"livelock", block().number, current_->index, current_->place, nullptr, "spins for ever: nobody else can go on"});
  Session::Get().End("a spin loop never ended");
}

}  // namespace portolan::gpu
