void f() {
  k<<<1, 64>>>(x);                     //-> hipLaunchKernelGGL(k, dim3(1), dim3(64), 0, 0, x);
  a::k<<<g, dim3(8, 8), n * 4>>>();    //-> hipLaunchKernelGGL(a::k, dim3(g), dim3(8, 8), n * 4, 0);
  ::k<float, 4> <<<dim3(2), b, 0, s>>> (x, y);  //-> hipLaunchKernelGGL(HIP_KERNEL_NAME(::k<float, 4>), dim3(2), dim3(b), 0, s, x, y);
  k<<<f(1, 2), b(3), 0, cudaStreamPerThread>>>(cudaSuccess);  //-> hipLaunchKernelGGL(k, dim3(f(1, 2)), dim3(b(3)), 0, hipStreamPerThread, hipSuccess);
  int x = 1 << 3;
  // k<<<1, 64>>>(x);
}
