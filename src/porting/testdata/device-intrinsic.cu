__device__ int f(int a, int b, float* p) {
  a = __dp4a(a, b, 0);  //! error device-intrinsic //-> a = portolan::dp4a(a, b, 0);
  a = __vadd4(a, b);  //! error device-intrinsic //-> a = portolan::vadd4(a, b);
  __stcs(p, 1.0f);  //! error device-intrinsic //-> portolan::stcs(p, 1.0f);
  __nanosleep(100);  //! error device-intrinsic //-> portolan::nanosleep(100);
  a = __popc(b) + __ffs(b) + __clz(b) + __brev(b) + __byte_perm(a, b, 0x3210);
  float x = __ldg(p) + __fdividef(1.0f, 2.0f) + rsqrtf(2.0f) + __expf(1.0f);
  atomicAdd(p, x);
  half h = htanh_approx(x) + mine::htanh_approx(x);  //! error device-intrinsic //-> half h = portolan::htanh_approx(x) + mine::htanh_approx(x);
  object.__dp4a(a, b, 0);
  return a;
}
