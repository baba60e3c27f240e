// The functions of core.h.
#include "host_gpu/device_memory.h"
#include "host_gpu/scheduler.h"
#include "host_gpu/session.h"
#include "host_gpu/shared_memory.h"
#include "portolan_gpu/core.h"

namespace portolan::gpu {

int Run(const LaunchSpec& launch) { return Scheduler::Get().Run(launch); }

Exchanged Exchange(const char* operation, uint64_t mask, uint64_t operand) {
  const Wave& wave = Scheduler::Get().Meet(operation, mask, operand, true, __builtin_frame_address(0));
  return {wave.active, wave.settled.data()};
}

uint64_t SyncWave(uint64_t mask) {
  return Scheduler::Get().Meet("a wave barrier", mask, 0, true, __builtin_frame_address(0)).active;
}

void FenceBlock() {
  if (!Scheduler::running()) return;
  Scheduler::Get().Meet("a fence of the block", 0, 0, true, __builtin_frame_address(0));
  Scheduler::current().in_step = true;
}

unsigned Lane() { return Scheduler::Get().current().lane; }

uint64_t ReadInactiveLane(const char* operation, unsigned lane) {
  const WorkItem& item = Scheduler::Get().current();
  Place place;
  CapturePlace(__builtin_frame_address(0), item.base_frame, &place);
  Session::Get().Report({"inactive-lane", item.wave->block->number, item.index, place, nullptr,
                         std::string(operation) + ": lane " + std::to_string(item.lane) + " reads lane " +
                             std::to_string(lane) + ", which does not take part"});
  const auto byte = static_cast<uint64_t>(Session::Get().poison());
  return byte * 0x0101010101010101u;
}

int SyncBlock(int vote) { return Scheduler::Get().BlockBarrier(vote, __builtin_frame_address(0)); }
void SyncGrid() { Scheduler::Get().GridBarrier(__builtin_frame_address(0)); }

void Yield() {
  if (Scheduler::Get().running()) Scheduler::Get().Spin(__builtin_frame_address(0), 1 << 20);
}

void* SharedVariable(SharedSlot* slot, size_t bytes, size_t alignment) {
  return SharedMemory::Get().Variable(slot, bytes, alignment);
}
void* DynamicShared() { return SharedMemory::Get().Dynamic(); }

void* Allocate(size_t bytes, MemoryKind kind) { return DeviceMemory::Get().Allocate(bytes, kind); }
bool Free(void* pointer) { return DeviceMemory::Get().Free(pointer); }

size_t AllocationRest(const void* pointer) {
  const int found = DeviceMemory::Get().Find(pointer);
  if (found < 0) return 0;
  const DeviceMemory::Buffer& buffer = DeviceMemory::Get().buffer(found);
  return buffer.begin + buffer.bytes - reinterpret_cast<uintptr_t>(pointer);
}

void Observe(const void* pointer, size_t bytes, const char* file, int line) {
  Session::Get().Observe(pointer, bytes, file, line);
}

}  // namespace portolan::gpu
