#include "device/emu/emulator.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "base/check.h"

namespace portolan::device::emu {
namespace {

constexpr size_t kMaxFaults = 100;  // entries a recorder takes; more only raise the counts of those

uint64_t Bit(int lane) { return uint64_t{1} << lane; }
uint64_t LowBits(int count) { return count >= 64 ? ~uint64_t{0} : Bit(count) - 1; }

// The order in which waiting lanes go on: smallest line first. Files have no order of their own but need one.
bool GoesBefore(const WorkItem& a, const WorkItem& b) {
  int files = a.where.file == b.where.file ? 0 : std::strcmp(a.where.file, b.where.file);
  return std::tuple(a.where.line, files, a.operation) < std::tuple(b.where.line, 0, b.operation);
}

}  // namespace

constinit thread_local Emulator* Emulator::running_ = nullptr;

Emulator& Emulator::OfThisThread() {
  static thread_local Emulator emulator;
  return emulator;
}

void Emulator::Run(const Launch& launch) {
  PORTOLAN_CHECK(launch_ == nullptr, "a kernel launched a kernel");
  PORTOLAN_CHECK(launch.threads >= 1 && launch.threads <= kMaxBlockThreads, "a block has 1 to 1024 work-items");
  PORTOLAN_CHECK(launch.wave_size == 32 || launch.wave_size == 64, "a wave has 32 or 64 lanes");
  FaultRecorder* outer = recorder_;
  std::unique_ptr<FaultRecorder> own;
  if (outer == nullptr) own = std::make_unique<FaultRecorder>();

  launch_ = &launch;
  running_ = this;
  while (work_items_.size() < static_cast<size_t>(launch.threads)) {
    work_items_.push_back(std::make_unique<WorkItem>(&RunWorkItem, static_cast<int>(work_items_.size())));
  }
  wave_count_ = static_cast<size_t>((launch.threads + launch.wave_size - 1) / launch.wave_size);
  if (waves_.size() < wave_count_) waves_.resize(wave_count_);
  for (int item = 0; item < launch.threads; ++item) {
    WorkItem& work_item = *work_items_[static_cast<size_t>(item)];
    work_item.lane = item % launch.wave_size;
    work_item.wave = &waves_[static_cast<size_t>(item / launch.wave_size)];
    if (work_item.lane == 0) work_item.wave->first = item;
  }
  auto end = BlockEnd::kFinished;
  for (block_.z = 0; block_.z < launch.grid.z; ++block_.z) {
    for (block_.y = 0; block_.y < launch.grid.y; ++block_.y) {
      for (block_.x = 0; block_.x < launch.grid.x && end == BlockEnd::kFinished; ++block_.x) end = RunBlock();
    }
  }
  launch_ = nullptr;
  running_ = nullptr;

  if (own != nullptr && !own->faults().empty()) {
    for (const Fault& fault : own->faults()) std::fprintf(stderr, "%s\n", FormatFault(fault).c_str());
    PORTOLAN_CHECK(false, "a kernel is faulty");
  }
}

Emulator::BlockEnd Emulator::RunBlock() {
  block_start_epoch_ = ++epoch_;
  for (size_t i = 0; i < wave_count_; ++i) {
    Wave& wave = waves_[i];
    wave.ready = LowBits(std::min(launch_->wave_size, launch_->threads - wave.first));
    wave.waiting = wave.barrier = wave.exited = 0;
  }
  statistics_.work_items += launch_->threads;
  for (;;) {
    running_wave_ = 0;
    current_ = &ItemOf(waves_[0], std::countr_zero(waves_[0].ready));
    Fiber::Switch(thread_, current_->fiber);
    uint64_t at_barrier = 0;
    for (size_t i = 0; i < wave_count_; ++i) at_barrier |= waves_[i].barrier;
    if (at_barrier == 0) return BlockEnd::kFinished;
    if (BarrierDiverges()) {
      for (size_t i = 0; i < wave_count_; ++i) {
        for (int lane = 0; lane < launch_->wave_size; ++lane) {
          if ((waves_[i].barrier & Bit(lane)) != 0) ItemOf(waves_[i], lane).fiber.Restart();
        }
      }
      return BlockEnd::kDiverged;
    }
    ++epoch_;
    statistics_.barriers += launch_->threads;
    for (size_t i = 0; i < wave_count_; ++i) waves_[i].ready = std::exchange(waves_[i].barrier, 0);
  }
}

// All work-items wait or have exited, and at least one waits: is it not the same barrier for all?
bool Emulator::BarrierDiverges() {
  const WorkItem* first = nullptr;
  const WorkItem* elsewhere = nullptr;
  int exited = 0;
  int at_first = 0;
  for (int item = 0; item < launch_->threads; ++item) {
    const WorkItem& work_item = *work_items_[static_cast<size_t>(item)];
    if ((work_item.wave->barrier & Bit(work_item.lane)) == 0) {
      ++exited;
      continue;
    }
    if (first == nullptr) first = &work_item;
    if (work_item.where == first->where) {
      ++at_first;
    } else {
      elsewhere = &work_item;
    }
  }
  if (exited == 0 && elsewhere == nullptr) return false;
  current_ = work_items_[static_cast<size_t>(first->index)].get();
  std::string others;
  if (exited > 0) others = fmt::format("{} have exited", exited);
  if (elsewhere != nullptr) {
    others += fmt::format("{}{} wait at line {}", others.empty() ? "" : ", ", launch_->threads - exited - at_first,
                          elsewhere->where.line);
  }
  Report(FaultKind::kBarrierDivergence, first->where,
         fmt::format("{} of {} work-items wait here, {}", at_first, launch_->threads, others));
  return true;
}

void Emulator::RunWorkItem() {
  Emulator& emulator = Running();
  WorkItem& self = *emulator.current_;
  for (;;) {
    emulator.launch_->body(emulator.launch_->argument);
    self.wave->exited |= Bit(self.lane);
    emulator.Stop();
  }
}

// The current work-item cannot go on: runs others until it can.
void Emulator::Stop() {
  WorkItem& self = *current_;
  self.wave->ready &= ~Bit(self.lane);
  Wave* wave = self.wave;
  if (wave->ready == 0) {
    if (wave->waiting != 0) {
      Settle(*wave);
    } else {
      while (++running_wave_ < wave_count_ && waves_[running_wave_].ready == 0) {
      }
      if (running_wave_ == wave_count_) {
        Fiber::Switch(self.fiber, thread_);
        return;
      }
      wave = &waves_[running_wave_];
    }
  }
  WorkItem& next = ItemOf(*wave, std::countr_zero(wave->ready));
  if (&next == &self) return;
  current_ = &next;
  Fiber::Switch(self.fiber, next.fiber);
}

// Carries out one operation among waiting lanes of a wave in which nobody can run, and makes them ready.
void Emulator::Settle(Wave& wave) {
  int chosen = std::countr_zero(wave.waiting);
  for (uint64_t rest = wave.waiting; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    if (GoesBefore(ItemOf(wave, lane), ItemOf(wave, chosen))) chosen = lane;
  }
  const WorkItem& first = ItemOf(wave, chosen);
  uint64_t active = 0;
  uint64_t ballot = 0;
  for (uint64_t rest = wave.waiting; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    const WorkItem& item = ItemOf(wave, lane);
    if (item.operation != first.operation || !(item.where == first.where)) continue;
    active |= Bit(lane);
    wave.settled[static_cast<size_t>(lane)] = wave.operand[static_cast<size_t>(lane)];
    if (wave.operand[static_cast<size_t>(lane)] != 0) ballot |= Bit(lane);
  }
  wave.active = active;
  wave.ballot = ballot;
  if (first.operation == WaveOperation::kSync) ++wave.epoch;
  wave.waiting &= ~active;
  wave.ready = active;
  statistics_.wave_operations += std::popcount(active);
  if (first.group_lanes > 0) CheckGroups(wave, chosen, active);
}

void Emulator::CheckGroups(const Wave& wave, int lane, uint64_t active) {
  const int group_lanes = ItemOf(wave, lane).group_lanes;
  for (int group = 0; group < launch_->wave_size; group += group_lanes) {
    const uint64_t lanes = LowBits(group_lanes) << group;
    if ((active & lanes) == 0) continue;
    const uint64_t missing = (wave.waiting | wave.barrier) & lanes;
    if (missing == 0) continue;
    const WorkItem& item = ItemOf(wave, std::countr_zero(active & lanes));
    WorkItem* running = std::exchange(current_, work_items_[static_cast<size_t>(item.index)].get());
    Report(FaultKind::kWaveDivergence, item.where,
           fmt::format("lane {} of this group of {} waits at line {}", std::countr_zero(missing), group_lanes,
                       ItemOf(wave, std::countr_zero(missing)).where.line));
    current_ = running;
  }
}

void Emulator::BlockBarrier(SourceLine where) {
  current_->where = where;
  current_->wave->barrier |= Bit(current_->lane);
  Stop();
}

const Wave& Emulator::Rendezvous(WaveOperation operation, uint64_t operand, int group_lanes, SourceLine where) {
  WorkItem& self = *current_;
  self.where = where;
  self.operation = operation;
  self.group_lanes = group_lanes;
  self.wave->operand[static_cast<size_t>(self.lane)] = operand;
  self.wave->waiting |= Bit(self.lane);
  Stop();
  return *self.wave;
}

uint64_t Emulator::Shuffle(uint64_t value, int source, int group_lanes, SourceLine where) {
  const Wave& wave = Rendezvous(WaveOperation::kShuffle, value, group_lanes, where);
  if (source < 0 || source >= launch_->wave_size || (wave.active & Bit(source)) == 0) {
    Report(FaultKind::kInactiveLaneRead, where,
           fmt::format("lane {} reads lane {}, which does not take part", current_->lane, source));
    return ~uint64_t{0};  // a NaN, so that nothing works by luck
  }
  return wave.settled[static_cast<size_t>(source)];
}

void Emulator::Report(FaultKind kind, SourceLine where, std::string detail) {
  for (Fault& fault : recorder_->faults_) {
    if (fault.kind == kind && fault.where == where && fault.kernel == launch_->kernel) {
      ++fault.count;
      return;
    }
  }
  if (recorder_->faults_.size() >= kMaxFaults) return;
  int64_t block = (block_.z * launch_->grid.y + block_.y) * launch_->grid.x + block_.x;
  recorder_->faults_.push_back({kind, launch_->kernel, block, current_->index, where, std::move(detail), 1});
}

}  // namespace portolan::device::emu
