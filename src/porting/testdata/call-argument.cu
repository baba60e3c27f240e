void f(void **p, size_t n, cudaGraph_t g) {  //-> void f(void **p, size_t n, hipGraph_t g) {
  cudaMallocHost(p, n);                      //-> hipHostMalloc(p, n, hipHostMallocDefault);
  cudaMallocHost(p, g(n, 2), cudaHostAllocMapped);  //-> hipHostMalloc(p, g(n, 2), hipHostMallocMapped);
  cudaEventCreate(&e);                       //-> hipEventCreate(&e);
  cudaEventCreate(&e, cudaEventDefault);     //-> hipEventCreateWithFlags(&e, hipEventDefault);
  cudaGraphInstantiate(&x, g);               //-> hipGraphInstantiateWithFlags(&x, g, 0);
  cudaGraphInstantiate(&x, g, 0);            //-> hipGraphInstantiateWithFlags(&x, g, 0);
  cudaGraphInstantiate(&x, g, NULL, NULL, 0);  //-> hipGraphInstantiate(&x, g, NULL, NULL, 0);
  cusparseSpSM_solve(h, a, b, &one, A, B, C, t, alg, d);  //-> hipsparseSpSM_solve(h, a, b, &one, A, B, C, t, alg, d, nullptr);
  cudaGetDriverEntryPoint("cuMemAlloc", &f, 0, &r);  //! warning call-argument //-> hipGetProcAddress("cuMemAlloc", &f, 603, 0, &r);
  cuOccupancyMaxPotentialBlockSize(&g, &b, f, NULL, bytes, 256);  //-> hipModuleOccupancyMaxPotentialBlockSize(&g, &b, f, bytes, 256);
  cuOccupancyMaxPotentialBlockSize(&g, &b, f, bytes_of, 0, 256);  //! error call-argument //-> hipModuleOccupancyMaxPotentialBlockSize(&g, &b, f, 0, 256);
  pool->cudaMallocHost(p, n);
}
