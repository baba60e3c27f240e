#include "porting/to_cuda.h"

#include <gtest/gtest.h>

#include "porting/names.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

TEST(HipToCudaName, IsTheInverseOfTheNamingRule) {
  EXPECT_EQ(HipToCudaName("hipMalloc"), "cudaMalloc");
  EXPECT_EQ(HipToCudaName("hipDeviceSynchronize"), "cudaDeviceSynchronize");
  EXPECT_EQ(HipToCudaName("hipDeviceProp_t"), "cudaDeviceProp");
  EXPECT_EQ(HipToCudaName("hipErrorOutOfMemory"), "cudaErrorMemoryAllocation");
  EXPECT_EQ(HipToCudaName("hipErrorInvalidValue"), "cudaErrorInvalidValue");
  EXPECT_EQ(HipToCudaName("hipblasStatus_t"), "cublasStatus_t");
  EXPECT_EQ(HipToCudaName("HIPBLAS_OP_C"), "CUBLAS_OP_C");
  EXPECT_EQ(HipToCudaName("hipDeviceScheduleBlockingSync"), "cudaDeviceScheduleBlockingSync");
  EXPECT_EQ(HipToCudaName("hipStreamNonBlocking"), "cudaStreamNonBlocking");
  EXPECT_EQ(HipToCudaName("hipModuleLoad"), "cuModuleLoad");
  EXPECT_EQ(HipToCudaName("hipStream_t"), "cudaStream_t");
  EXPECT_EQ(HipToCudaName("hipModule_t"), "CUmodule");
  EXPECT_EQ(HipToCudaName("hipErrorIllegalAddress"), "cudaErrorIllegalAddress");
  EXPECT_EQ(HipToCudaName("hipblasSgemm"), "cublasSgemm");
  EXPECT_EQ(HipToCudaName("HIPBLAS_OP_N"), "CUBLAS_OP_N");
  EXPECT_EQ(HipToCudaName("hiprand_uniform"), "curand_uniform");
  EXPECT_EQ(HipToCudaName("hipDeviceAttributeWarpSize"), "cudaDevAttrWarpSize");
  EXPECT_EQ(HipToCudaName("hipDoubleComplex"), "cuDoubleComplex");
  EXPECT_EQ(HipToCudaName("hipCmulf"), "cuCmulf");
  EXPECT_EQ(HipToCudaName("hipConj"), "cuConj");
  EXPECT_EQ(HipToCudaName("hipCreateTextureObject"), "cudaCreateTextureObject");
  EXPECT_EQ(HipToCudaName("hipblasCgelsBatched_v2"), "cublasCgelsBatched");
  for (const char* own : {"hip", "hippo", "hip_check", "HIP_CHECK", "hips", "shipMalloc", "cudaMalloc", "x"}) {
    EXPECT_EQ(HipToCudaName(own), "") << own;
  }
}

// Law: there and back is the same name, for what the table and the rule know.
TEST(HipToCudaName, ThereAndBack) {
  for (const char* cuda : {"cudaMemcpyAsync", "cudaStreamCreate", "cudaEventElapsedTime", "cublasCreate",
                           "cufftExecC2C", "cusparseSpMV", "cudaMemcpyHostToDevice", "CUDA_R_32F", "cudaGetLastError",
                           "cuCtxCreate", "nvrtcCompileProgram", "cublasLtMatmul"}) {
    const std::string hip = MapName(cuda).text;
    EXPECT_EQ(MapName(HipToCudaName(hip)).text, hip) << cuda;
  }
}

std::string Ported(const std::string& text, size_t findings) {
  const SourceFile source("k.hip", text);
  ProjectFacts facts;
  CollectFacts(source, &facts);
  const PortedSource ported = PortSourceToCuda(source, facts, TestTarget("sm_90"));
  EXPECT_EQ(ported.findings.size(), findings) << text;
  const SourceFile again("k.hip", ported.text);
  EXPECT_EQ(PortSourceToCuda(again, facts, TestTarget("sm_90")).text, ported.text);
  return ported.text;
}

TEST(PortSourceToCuda, NamesHeadersAndLaunches) {
  EXPECT_EQ(Ported("#include <hip/hip_runtime.h> // hipMalloc\n#include \"hip/hip_fp16.h\"\n"
                   "void f() { hipMalloc(&p, n); hipLaunchKernelGGL(k, dim3(1, 2), 64, 0, s, p, hipMemcpyDefault); }\n",
                   0),
            "#include <cuda_runtime.h> // hipMalloc\n#include \"cuda_fp16.h\"\n"
            "void f() { cudaMalloc(&p, n); k<<<dim3(1, 2), 64, 0, s>>>(p, cudaMemcpyDefault); }\n");
  EXPECT_EQ(Ported("hipLaunchKernelGGL(HIP_KERNEL_NAME(k<4, int>), g, b, 0, 0);", 0), "k<4, int><<<g, b, 0, 0>>>();");
  EXPECT_EQ(Ported("hipLaunchKernelGGL((k<4, int>), g, b, 0, 0, x);", 0), "k<4, int><<<g, b, 0, 0>>>(x);");
  EXPECT_EQ(Ported("HIP_DYNAMIC_SHARED(float, tile)\nhipMemcpyToSymbol(HIP_SYMBOL(table), p, n);", 0),
            "extern __shared__ float tile[];\ncudaMemcpyToSymbol(table, p, n);");
  EXPECT_EQ(Ported("#ifdef __HIPCC__\n#endif\n", 0), "#ifdef __CUDACC__\n#endif\n");
}

TEST(PortSourceToCuda, ReportsWhatItCannotDo) {
  for (const std::string text : {"x = __shfl_xor(v, 1);", "__builtin_amdgcn_s_barrier();", "rocblas_sgemm(h);",
                                 "#include <rocwmma/rocwmma.hpp>\n"}) {
    EXPECT_EQ(Ported(text, 1), text);
  }
}

TEST(PortSourceToCuda, LeavesTheRest) {
  for (const std::string text : {"#define hipCheck(x) x\nhipCheck(1);\n", "int hips = 3; hipsters();", "\"hipMalloc\"",
                                 "hipLaunchKernelGGL", "hipLaunchKernelGGL(", "x = __shfl_xor_sync(m, v, 1);"}) {
    EXPECT_EQ(Ported(text, text == "hipLaunchKernelGGL(" ? 1 : 0), text);
  }
}

}  // namespace
}  // namespace portolan
