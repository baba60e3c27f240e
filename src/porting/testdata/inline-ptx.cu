__device__ int f(int a, int b) {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));  //! error inline-ptx //-> lane = portolan::lane();
  asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(a) : "r"(a), "r"(b), "r"(lane));  //! error inline-ptx //-> a = portolan::lop3(a, b, lane, 0x96);
  asm volatile("membar.gl;" ::: "memory");  //! error inline-ptx //-> __threadfence();
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1};" : "=r"(a) : "r"(b));  //! error inline-ptx
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0; selp.u32 %0, 1, 0, p; }" : "=r"(a) : "r"(b));  //! error inline-ptx //-> do { bool portolan_p; portolan_p = static_cast<unsigned>(b) == static_cast<unsigned>(0); a = portolan_p ? (1) : (0); } while (0);
  asm volatile("bar.sync 1, 64;");  //! error inline-ptx
  asm volatile("ld.volatile.global.b32 %0, [%1];" : "=r"(a) : "l"(&b) : "memory");  //! error inline-ptx //-> portolan::ptx_load<unsigned, true>(portolan::ptx_address<unsigned>(&b, 0), a);
  asm volatile("s_waitcnt vmcnt(0)");
  asm volatile("" ::: "memory");
  asm volatile("" : "+r"(a));
  int asmb = 3;
  return a;
}
unsigned long long ticks() {
  unsigned lo, hi;
  asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
  return lo;
}
