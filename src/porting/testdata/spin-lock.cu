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
