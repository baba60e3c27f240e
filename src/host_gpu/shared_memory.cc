#include "host_gpu/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "host_gpu/scheduler.h"
#include "host_gpu/session.h"

namespace portolan::gpu {
namespace {

constexpr size_t kMaxSlots = 4096;
constexpr size_t kGapBytes = 64;  // between variables: who leaves one does not land in the next

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

void* MapLazily(size_t bytes) {
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) Unsupported("more address space than the system gives");
  return map;
}

}  // namespace

void SharedMemory::StartLaunch(size_t dynamic_bytes, size_t slots) {
  if (base_ == 0) {
    mapped_ = kSlotBytes * kMaxSlots;
    base_ = reinterpret_cast<uintptr_t>(MapLazily(mapped_));
    cells_ = static_cast<Cell*>(MapLazily(mapped_ * sizeof(Cell)));
    owned_.resize(kSlotBytes / 4);
  }
  if (dynamic_bytes + 16384 > kSlotBytes) Unsupported("a launch with more shared memory than any GPU has");
  std::fill(owned_.begin(), owned_.end(), uint8_t{0});
  std::fill_n(owned_.begin(), (dynamic_bytes + 3) / 4, uint8_t{1});
  dynamic_bytes_ = dynamic_bytes;
  declared_ = 0;
  used_ = RoundUp(dynamic_bytes, 16) + kGapBytes;
  AddSlots(slots);
}

void SharedMemory::AddSlots(size_t slots) {
  if (slots > kMaxSlots) Unsupported("more than 4096 blocks at a time");
  slots_ = slots;
}

void SharedMemory::StartBlock(int slot) {
  std::memset(reinterpret_cast<void*>(base_ + static_cast<size_t>(slot) * kSlotBytes), Session::Get().poison(), used_);
}

void SharedMemory::EndLaunch(const LaunchSpec& launch) {
  SettlePendingWrite();
  Session::Get().CheckSharedSize(launch, declared_ + dynamic_bytes_);
}

void* SharedMemory::Variable(SharedSlot* slot, size_t bytes, size_t alignment) {
  Scheduler& scheduler = Scheduler::Get();
  if (slot->launch != scheduler.launch_number()) {
    slot->launch = scheduler.launch_number();
    slot->offset = RoundUp(used_, std::max<size_t>(alignment, 16));
    if (slot->offset + bytes + kGapBytes > kSlotBytes) Unsupported("more shared memory than any GPU has");
    used_ = slot->offset + bytes + kGapBytes;
    declared_ = RoundUp(declared_, std::min<size_t>(alignment, 16)) + bytes;
    std::fill_n(owned_.begin() + static_cast<ptrdiff_t>(slot->offset / 4), (bytes + 3) / 4, uint8_t{1});
    for (size_t i = 0; i < slots_; ++i) {
      std::memset(reinterpret_cast<void*>(base_ + i * kSlotBytes + slot->offset), Session::Get().poison(), bytes);
    }
  }
  return reinterpret_cast<void*>(base_ + static_cast<size_t>(scheduler.block().slot) * kSlotBytes + slot->offset);
}

void* SharedMemory::Dynamic() const {
  return reinterpret_cast<void*>(base_ + static_cast<size_t>(Scheduler::Get().block().slot) * kSlotBytes);
}

bool SharedMemory::Conflicts(const Access& before, const Access& now) const {
  if (before.epoch != now.epoch || before.item == now.item || (before.atomic && now.atomic)) return false;
  const int wave = Session::Get().wave_size();
  return !(before.item / wave == now.item / wave && before.wave_epoch != now.wave_epoch);
}

std::string SharedMemory::NameOf(size_t offset) const {
  if (offset < dynamic_bytes_) return "byte " + std::to_string(offset) + " of dynamic shared memory";
  return "byte " + std::to_string(offset) + " of the block's shared memory";
}

void SharedMemory::ReportRace(const Access& other, const char* verb, size_t offset, const Place& place, int64_t block,
                              int item) {
  Place other_place;
  other_place.depth = 1;
  other_place.address[0] = Session::Get().code_base() + other.code;
  // Within a wave the hardware keeps lanes in step more often than not.
  const int wave = Session::Get().wave_size();
  const char* kind = other.item / wave == item / wave ? "wave-race" : "shared-race";
  Session::Get().Report({kind, block, item, place, &other_place,
                         NameOf(offset) + " was " + verb + " by work-item " + std::to_string(other.item)});
}

// The write in front of which Check was called last has happened since.
void SharedMemory::SettlePendingWrite() {
  if (pending_.address == 0) return;
  uint64_t after[2] = {};
  std::memcpy(after, reinterpret_cast<const void*>(pending_.address), static_cast<size_t>(pending_.bytes));
  const bool changed = std::memcmp(after, pending_.before, static_cast<size_t>(pending_.bytes)) != 0;
  // Whoever writes again what he wrote before does not take back that it is new to the others.
  pending_.cell->write_changed = changed || (pending_.conflict && pending_.cell->write_changed);
  if (pending_.conflict && changed) {
    ReportRace(pending_.other, pending_.verb, (pending_.address - base_) % kSlotBytes, pending_.place, pending_.block,
               pending_.item);
  }
  pending_.address = 0;
}

void SharedMemory::Check(const volatile void* address, int bytes, AccessKind kind, uintptr_t code, const void* frame) {
  Scheduler& scheduler = Scheduler::Get();
  if (!scheduler.running()) return;
  SettlePendingWrite();
  const WorkItem& item = scheduler.current();
  const Block& block = *item.wave->block;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t offset = at - base_ - static_cast<uintptr_t>(block.slot) * kSlotBytes;
  if (offset + static_cast<uintptr_t>(bytes) > kSlotBytes || owned_[offset / 4] == 0) {
    Place place;
    CapturePlace(frame, item.base_frame, &place);
    Session::Get().Report({"shared-out-of-range", block.number, item.index, place, nullptr,
                           std::to_string(bytes) + " bytes outside of every shared array"});
    return;
  }
  const Access now = {block.epoch, item.wave->epoch, static_cast<int16_t>(item.index), kind == AccessKind::kAtomic,
                      static_cast<uint32_t>(code - Session::Get().code_base())};
  for (int done = 0; done < bytes; done += 4) {
    CheckElement(offset + static_cast<uintptr_t>(done), at + static_cast<uintptr_t>(done), std::min(bytes - done, 4),
                 kind, now, frame);
  }
}

void SharedMemory::CheckElement(uintptr_t offset, uintptr_t address, int bytes, AccessKind kind, const Access& now,
                                const void* frame) {
  const WorkItem& item = Scheduler::Get().current();
  const Block& block = *item.wave->block;
  Cell& cell = cells_[address - base_];
  const auto place = [&] {
    Place here;
    CapturePlace(frame, item.base_frame, &here);
    return here;
  };
  if (kind == AccessKind::kRead) {
    if (cell.write_changed && Conflicts(cell.write, now)) {
      ReportRace(cell.write, "written", offset, place(), block.number, item.index);
    }
    const Cell& word = cells_[(address - base_) & ~uintptr_t{3}];
    if (cell.write.epoch < block.start_epoch && word.write.epoch < block.start_epoch) {
      Session::Get().Report({"shared-uninitialised", block.number, item.index, place(), nullptr,
                             "nobody of this block has written " + NameOf(offset)});
    }
    const bool replace_first = cell.read[0].epoch != now.epoch || cell.read[0].item == now.item;
    (replace_first ? cell.read[0] : cell.read[1]) = now;
    return;
  }
  SettlePendingWrite();
  const Access* other = nullptr;
  const char* verb = "read";
  for (const Access& read : cell.read) {
    if (Conflicts(read, now)) other = &read;
  }
  if (Conflicts(cell.write, now)) {
    other = &cell.write;
    verb = "written";
  }
  pending_.address = address;
  pending_.bytes = bytes;
  pending_.before[0] = pending_.before[1] = 0;
  std::memcpy(pending_.before, reinterpret_cast<const void*>(address), static_cast<size_t>(bytes));
  pending_.cell = &cell;
  pending_.conflict = other != nullptr;
  if (other != nullptr) {
    pending_.other = *other;
    pending_.verb = verb;
    pending_.place = place();
    pending_.block = block.number;
    pending_.item = item.index;
  }
  cell.write = now;
}

}  // namespace portolan::gpu
