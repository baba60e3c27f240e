#pragma once

#include <array>
#include <string_view>

namespace portolan {

// A name of CMake's CUDA support and its HIP counterpart.
struct CMakeName {
  std::string_view cuda;
  std::string_view hip;
};

// Imported targets of CMake's FindCUDAToolkit and what ROCm's packages export (their *-targets.cmake, ROCm 5.2 to 7).
inline constexpr std::array<CMakeName, 18> kTargets = {{{"CUDA::cudart", "hip::host"},
                                                        {"CUDA::cudart_static", "hip::host"},
                                                        {"CUDA::cuda_driver", "hip::host"},
                                                        {"CUDA::toolkit", "hip::host"},
                                                        {"CUDA::cublas", "roc::hipblas"},
                                                        {"CUDA::cublas_static", "roc::hipblas"},
                                                        {"CUDA::cublasLt", "roc::hipblaslt"},
                                                        {"CUDA::cublasLt_static", "roc::hipblaslt"},
                                                        {"CUDA::cufft", "hip::hipfft"},
                                                        {"CUDA::cufft_static", "hip::hipfft"},
                                                        {"CUDA::curand", "hip::hiprand"},
                                                        {"CUDA::curand_static", "hip::hiprand"},
                                                        {"CUDA::cusparse", "roc::hipsparse"},
                                                        {"CUDA::cusparse_static", "roc::hipsparse"},
                                                        {"CUDA::cusolver", "roc::hipsolver"},
                                                        {"CUDA::cusolver_static", "roc::hipsolver"},
                                                        {"CUDA::nvrtc", "hiprtc::hiprtc"},
                                                        {"NCCL::NCCL", "roc::rccl"}}};

// Variables of FindCUDA (legacy) that stand for libraries.
inline constexpr std::array<CMakeName, 8> kLibraryVariables = {{{"${CUDA_LIBRARIES}", "hip::host"},
                                                                {"${CUDA_CUDART_LIBRARY}", "hip::host"},
                                                                {"${CUDA_CUDA_LIBRARY}", "hip::host"},
                                                                {"${CUDA_CUBLAS_LIBRARIES}", "roc::hipblas"},
                                                                {"${CUDA_CUFFT_LIBRARIES}", "hip::hipfft"},
                                                                {"${CUDA_curand_LIBRARY}", "hip::hiprand"},
                                                                {"${CUDA_cusparse_LIBRARY}", "roc::hipsparse"},
                                                                {"${CUDA_cusolver_LIBRARY}", "roc::hipsolver"}}};

// Variables and properties of CMake's CUDA language that its HIP language has under its own name.
inline constexpr std::array<CMakeName, 14> kNames = {
    {{"CMAKE_CUDA_STANDARD", "CMAKE_HIP_STANDARD"},
     {"CMAKE_CUDA_STANDARD_REQUIRED", "CMAKE_HIP_STANDARD_REQUIRED"},
     {"CMAKE_CUDA_EXTENSIONS", "CMAKE_HIP_EXTENSIONS"},
     {"CMAKE_CUDA_COMPILER", "CMAKE_HIP_COMPILER"},
     {"CMAKE_CUDA_FLAGS", "CMAKE_HIP_FLAGS"},
     {"CMAKE_CUDA_FLAGS_DEBUG", "CMAKE_HIP_FLAGS_DEBUG"},
     {"CMAKE_CUDA_FLAGS_RELEASE", "CMAKE_HIP_FLAGS_RELEASE"},
     {"CMAKE_CUDA_FLAGS_RELWITHDEBINFO", "CMAKE_HIP_FLAGS_RELWITHDEBINFO"},
     {"CMAKE_CUDA_ARCHITECTURES", "CMAKE_HIP_ARCHITECTURES"},
     {"CMAKE_CUDA_COMPILER_LAUNCHER", "CMAKE_HIP_COMPILER_LAUNCHER"},
     {"CUDA_STANDARD", "HIP_STANDARD"},
     {"CUDA_STANDARD_REQUIRED", "HIP_STANDARD_REQUIRED"},
     {"CUDA_EXTENSIONS", "HIP_EXTENSIONS"},
     {"CUDA_ARCHITECTURES", "HIP_ARCHITECTURES"}}};

inline constexpr std::array<CMakeName, 4> kCommands = {{{"cuda_add_executable", "add_executable"},
                                                        {"cuda_add_library", "add_library"},
                                                        {"cuda_include_directories", "include_directories"},
                                                        {"cuda_add_cublas_to_target", ""}}};

}  // namespace portolan
