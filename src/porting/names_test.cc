#include "porting/names.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

TEST(MapName, FollowsTheNamingRule) {
  EXPECT_EQ(MapName("cudaMemcpyAsync").text, "hipMemcpyAsync");
  EXPECT_EQ(MapName("cublasSgemm").text, "hipblasSgemm");
  EXPECT_EQ(MapName("cublasLtMatmul").text, "hipblasLtMatmul");
  EXPECT_EQ(MapName("CUBLAS_OP_N").text, "HIPBLAS_OP_N");
  EXPECT_EQ(MapName("curand_uniform").text, "hiprand_uniform");
  EXPECT_EQ(MapName("cusparseSpMV").text, "hipsparseSpMV");
  EXPECT_EQ(MapName("cufftExecC2C").text, "hipfftExecC2C");
  EXPECT_EQ(MapName("cuModuleLoad").text, "hipModuleLoad");
  EXPECT_EQ(MapName("cudaDevAttrWarpSize").text, "hipDeviceAttributeWarpSize");
}

TEST(MapName, KnowsTheExceptions) {
  EXPECT_EQ(MapName("cudaDeviceProp").text, "hipDeviceProp_t");
  EXPECT_EQ(MapName("cudaHostAlloc").text, "hipHostAlloc");
  EXPECT_EQ(MapName("cuMemAlloc").text, "hipMalloc");
  EXPECT_EQ(MapName("cuGetErrorString").text, "hipDrvGetErrorString");
  EXPECT_EQ(MapName("cudaGraphConditionalHandleCreate").fate, NameFate::kUnavailable);
}

// HIP 6.3 declares each of these.
TEST(MapName, SpellsTheDriversEnumeratorsInTheRuntimesWay) {
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH").text, "hipDeviceAttributeMaxTexture2DWidth");
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR").text,
            "hipDeviceAttributeMaxThreadsPerMultiProcessor");
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR").text,
            "hipDeviceAttributeMaxSharedMemoryPerMultiprocessor");
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_CLOCK_RATE").text, "hipDeviceAttributeClockRate");
  EXPECT_EQ(MapName("CUDA_ERROR_ILLEGAL_ADDRESS").text, "hipErrorIllegalAddress");
  EXPECT_EQ(MapName("CU_EVENT_BLOCKING_SYNC").text, "hipEventBlockingSync");
  EXPECT_EQ(MapName("CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL").text, "HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL");
  EXPECT_EQ(MapName("CUmemLocation_st").text, "hipMemLocation");
  EXPECT_EQ(MapName("CU_CTX_SCHED_AUTO").text, "hipDeviceScheduleAuto");
}

// HIP has one attribute for all sides of a kind of texture or surface, but not of plain textures.
TEST(MapName, JoinsTheSidesOfTextures) {
  EXPECT_EQ(MapName("cudaDevAttrMaxTexture2DWidth").text, "hipDeviceAttributeMaxTexture2DWidth");
  EXPECT_EQ(MapName("cudaDevAttrMaxTexture3DHeightAlt").text, "hipDeviceAttributeMaxTexture3DAlt");
  EXPECT_EQ(MapName("cudaDevAttrMaxSurface2DHeight").text, "hipDeviceAttributeMaxSurface2D");
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH").text,
            "hipDeviceAttributeMaxTextureCubemapLayered");
  EXPECT_EQ(MapName("CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH").text,
            "hipDeviceAttributeMaxTexture1DMipmap");
}

TEST(MapName, DropsTheVersionOfAFunction) {
  EXPECT_EQ(MapName("cuMemcpyHtoD_v2").text, "hipMemcpyHtoD");
  EXPECT_EQ(MapName("cublasSgemv_v2_64").text, "hipblasSgemv_64");
  EXPECT_EQ(MapName("cuStreamGetCaptureInfo_v2").text, "hipStreamGetCaptureInfo_v2");
  EXPECT_EQ(MapName("my_v2").fate, NameFate::kNotVendor);
}

TEST(HipblasSecondName, OfComplexFunctionsAndThoseOfAnyType) {
  EXPECT_EQ(HipblasSecondName("hipblasCgemm"), "hipblasCgemm_v2");
  EXPECT_EQ(HipblasSecondName("hipblasZhemv_64"), "hipblasZhemv_v2_64");
  EXPECT_EQ(HipblasSecondName("hipblasCgemmStridedBatched"), "hipblasCgemmStridedBatched_v2");
  EXPECT_EQ(HipblasSecondName("hipblasGemmEx"), "hipblasGemmEx_v2");
  EXPECT_EQ(HipblasSecondName("hipblasIzamax"), "hipblasIzamax_v2");
  for (const char* one : {"hipblasSgemm", "hipblasCreate", "hipblasScopy", "hipblasIsamax", "hipMalloc", "hipblas"}) {
    EXPECT_EQ(HipblasSecondName(one), "") << one;
  }
}

TEST(MapName, LeavesEverythingElse) {
  for (const char* name : {"cuda", "cudaify", "cuda_helper", "CUDA_CHECK", "cube", "cu", "current", "ncclAllReduce",
                           "hipMalloc", "my_cudaMalloc", "CU_H", "cublas_handle"}) {
    EXPECT_EQ(MapName(name).fate, NameFate::kNotVendor) << name;
  }
}

TEST(MapHeader, MapsAndLeaves) {
  EXPECT_EQ(MapHeader("cuda_runtime.h").text, "hip/hip_runtime.h");
  EXPECT_EQ(MapHeader("cub/device/device_scan.cuh").text, "hipcub/hipcub.hpp");
  EXPECT_EQ(MapHeader("thrust/system/cuda/vector.h").text, "thrust/system/hip/vector.h");
  for (const char* name : {"vector", "thrust/sort.h", "mycuda.h", "cuda/std/atomic"}) {
    EXPECT_EQ(MapHeader(name).fate, NameFate::kNotVendor) << name;
  }
}

}  // namespace
}  // namespace portolan
