#pragma once

// What a translated CUDA or HIP program and the library that runs it (src/host_gpu) say to each other. Everything else
// in these folders of headers is written in these words.

#include <stddef.h>
#include <stdint.h>

// Lanes of a wave: 32 for the original, 64 for the port.
#ifndef PORTOLAN_GPU_WAVE
#define PORTOLAN_GPU_WAVE 32
#endif

#define PORTOLAN_INLINE inline __attribute__((always_inline))

struct uint3 {
  unsigned int x, y, z;
};

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int in_x = 1, unsigned int in_y = 1, unsigned int in_z = 1) : x(in_x), y(in_y), z(in_z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// The place of the work-item that runs. Plain variables, so that a program's own names hide them as they do on a GPU.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace portolan::gpu {

// A pointer among a kernel's arguments: which buffer it means, and what its elements are.
struct PointerArgument {
  const void* pointer;
  char type;  // 'f' float, 'd' double, 'h' half, 'b' bfloat16, 'i' integers, '?' anything else
  bool written;
  int element_bytes;
};

struct LaunchSpec {
  const char* kernel;
  const char* file;
  int line;
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes;
  bool cooperative;  // all blocks at a time
  void (*body)(void*);
  void* argument;
  const PointerArgument* pointers;
  int pointer_count;
  bool other_pointers;  // an argument is a structure, which may hold pointers as well
};

// Runs a kernel to its end. Returns a cudaError_t: 0, or 9 (invalid configuration).
int Run(const LaunchSpec& launch);

// What the lanes of a wave that stand at the same place have handed in.
struct Exchanged {
  uint64_t active;        // lanes that took part
  const uint64_t* value;  // by lane
};
// Waits for the lanes of the wave that reach this place. `mask` names lanes that must (0: whoever comes). `operation`
// is for the report. Orders the wave's accesses to shared memory. Valid until the next wait.
Exchanged Exchange(const char* operation, uint64_t mask, uint64_t operand);
uint64_t SyncWave(uint64_t mask);
// As SyncWave for whoever comes; the next write of a lane to shared memory waits for the reads of the others, too.
void FenceBlock();
unsigned Lane();
// A lane is read that took no part: what a GPU does not define. Returns the value to go on with.
uint64_t ReadInactiveLane(const char* operation, unsigned lane);

// Waits for all work-items of the block; returns how many voted with 1.
int SyncBlock(int vote);
// Waits for all work-items of the grid (a cooperative launch).
void SyncGrid();
// Lets others run: a work-item that waits for another one.
void Yield();
// An access by an atomic operation, in front of it: it races with no other one.
void AtomicAccess(const volatile void* address, int bytes);

// A __shared__ declaration: its place in a block's shared memory, the same for all blocks of a launch.
struct SharedSlot {
  uint64_t launch = 0;
  size_t offset = 0;
};
void* SharedVariable(SharedSlot* slot, size_t bytes, size_t alignment);
void* DynamicShared();

// Device memory. 0 where there is none left.
enum class MemoryKind { kDevice, kManaged, kHost };
void* Allocate(size_t bytes, MemoryKind kind);
bool Free(void* pointer);  // false: not the start of an allocation
// Bytes left in the allocation behind `pointer`; 0 for memory that is not the device's.
size_t AllocationRest(const void* pointer);
// Tells that the program reads results: device memory at `pointer` goes to the host.
void Observe(const void* pointer, size_t bytes, const char* file, int line);
// Ends the program with a message; `what` is a feature that this runtime lacks.
[[noreturn]] void Unsupported(const char* what);
// Seconds that a program sees pass.
double VirtualSeconds();
// The same in all runs of a program: starts where nothing random may differ between them.
uint64_t VirtualClock();

}  // namespace portolan::gpu
