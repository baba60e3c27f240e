#include "kernels/gemm/cuda_cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>

namespace portolan::kernels::cuda {
namespace {

CublasLt Load() {
  CublasLt library;
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* loaded = nullptr;
  if (const char* folder = std::getenv("PORTOLAN_CUDA_LIBRARIES")) {
    loaded = dlopen((std::string(folder) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (loaded == nullptr) loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    library.summary = name +
                      " is not found, so products run on tiles of our own, much slower: install it, or name its "
                      "folder in PORTOLAN_CUDA_LIBRARIES";
    return library;
  }
  bool complete = true;
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, symbol));
    complete = complete && function != nullptr;
  };
  find(library.Create, "cublasLtCreate");
  find(library.GetVersion, "cublasLtGetVersion");
  find(library.MatmulDescCreate, "cublasLtMatmulDescCreate");
  find(library.MatmulDescDestroy, "cublasLtMatmulDescDestroy");
  find(library.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  find(library.MatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  find(library.MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(library.MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(library.MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(library.MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  find(library.MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(library.Matmul, "cublasLtMatmul");
  if (!complete || library.Create(&library.handle) != CUBLAS_STATUS_SUCCESS) {
    library.handle = nullptr;
    library.summary = name + " does not work here, so products run on tiles of our own, much slower";
    return library;
  }
  library.summary = "cuBLASLt " + std::to_string(library.GetVersion());
  return library;
}

}  // namespace

const CublasLt& LoadCublasLt() {
  static const CublasLt library = Load();
  return library;
}

}  // namespace portolan::kernels::cuda
