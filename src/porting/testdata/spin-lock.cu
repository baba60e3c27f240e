__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0);  //! warning spin-lock
}
__device__ void lock_braces(int* mutex) {
  while (atomicExch(mutex, 1) != 0) {}  //! warning spin-lock
}
__device__ void add(unsigned* p, unsigned v) {
  unsigned old = *p, seen;
  do { seen = old; old = atomicCAS(p, seen, seen + v); } while (seen != old);
  while ((old = atomicCAS(p, seen, seen + v)) != seen) { seen = old; }
}
__device__ void one_thread(int* mutex, int lane) {
  if (threadIdx.x == 0) {
    atomicAdd(mutex, 1);
    while (atomicCAS(mutex, 4, 4) != 4) {}
  }
  if (lane == 0) while (atomicCAS(mutex, 0, 1) != 0);
  if (lane == 0 || mutex[1] == 3) {
    while (atomicCAS(mutex, 0, 1) != 0);  //! warning spin-lock
  }
}
