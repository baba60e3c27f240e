#pragma once

#include <cublasLt.h>

#include <string>

namespace portolan::kernels::cuda {

// The functions of cuBLASLt that are used, found when the program runs: without the library the program still starts.
struct CublasLt {
  decltype(&cublasLtCreate) Create = nullptr;
  decltype(&cublasLtGetVersion) GetVersion = nullptr;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic = nullptr;
  decltype(&cublasLtMatmul) Matmul = nullptr;

  cublasLtHandle_t handle = nullptr;  // null: not there
  std::string summary;                // the version, or why it is not there
};
// Loaded once a process. Looks for libcublasLt of the CUDA version that this was compiled with where the dynamic linker
// looks, and in the folder that the environment's PORTOLAN_CUDA_LIBRARIES names.
const CublasLt& LoadCublasLt();

}  // namespace portolan::kernels::cuda
