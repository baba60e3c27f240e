#include "porting/cmake_file.h"

#include <gtest/gtest.h>

#include "porting/test_target.h"

namespace portolan {
namespace {

std::string Ported(const std::string& text) {
  const PortedBuildFile once = PortCMakeFile("CMakeLists.txt", text, TestTarget());
  EXPECT_EQ(PortCMakeFile("CMakeLists.txt", once.text, TestTarget()).text, once.text) << "a second run changes it";
  return once.text;
}

std::vector<std::string> Left(const std::string& text) {
  std::vector<std::string> places;
  for (const Finding& finding : PortCMakeFile("CMakeLists.txt", text, TestTarget()).findings) {
    places.push_back(std::to_string(finding.position.line) + ": " + finding.message);
  }
  return places;
}

TEST(CMakeFile, AModernProject) {
  EXPECT_EQ(Ported("cmake_minimum_required(VERSION 3.18...3.27) # 3.18\n"
                   "project(app LANGUAGES CXX CUDA)\n"
                   "find_package(CUDAToolkit 12.0 REQUIRED)\n"
                   "set(CMAKE_CUDA_STANDARD 17)\n"
                   "set(CMAKE_CUDA_ARCHITECTURES 70 80 90)\n"
                   "add_executable(app main.cpp kernels/a.cu \"b.cu\")\n"
                   "set_target_properties(app PROPERTIES CUDA_ARCHITECTURES \"70;80\" OUTPUT_NAME run)\n"
                   "target_link_libraries(app PRIVATE CUDA::cudart CUDA::cublas CUDA::curand)\n"),
            "cmake_minimum_required(VERSION 3.21...3.27) # 3.18\n"
            "project(app LANGUAGES CXX HIP)\n"
            "find_package(hip REQUIRED)\nfind_package(hipblas REQUIRED)\nfind_package(hiprand REQUIRED)\n"
            "set(CMAKE_HIP_STANDARD 17)\n"
            "set(CMAKE_HIP_ARCHITECTURES gfx950)\n"
            "add_executable(app main.cpp kernels/a.cu \"b.cu\")\n"
            "set_source_files_properties(kernels/a.cu \"b.cu\" PROPERTIES LANGUAGE HIP)\n"
            "set_target_properties(app PROPERTIES HIP_ARCHITECTURES gfx950 OUTPUT_NAME run)\n"
            "target_link_libraries(app PRIVATE hip::host roc::hipblas hip::hiprand)\n");
}

TEST(CMakeFile, FlagsAndGeneratorExpressions) {
  EXPECT_EQ(Ported("project(a CUDA)\nset(CMAKE_CUDA_FLAGS \"${CMAKE_CUDA_FLAGS} -O3 --use_fast_math -gencode "
                   "arch=compute_80,code=sm_80 --expt-relaxed-constexpr\")\n"
                   "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo> -Wall)\n"),
            "project(a HIP)\nset(CMAKE_HIP_FLAGS \"${CMAKE_HIP_FLAGS} -O3 -ffast-math\")\n"
            "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-gline-tables-only> -Wall)\n");
}

TEST(CMakeFile, TheLegacyModule) {
  EXPECT_EQ(Ported("find_package(CUDA 10.0 QUIET REQUIRED)\nif(CUDA_FOUND)\n  cuda_add_library(k STATIC k.cu)\n"
                   "  target_link_libraries(k ${CUDA_LIBRARIES} ${CUDA_CUBLAS_LIBRARIES})\nendif()\n"),
            "find_package(hip QUIET REQUIRED)\nfind_package(hipblas REQUIRED)\nif(hip_FOUND)\n  add_library(k STATIC "
            "k.cu)\n  set_source_files_properties(k.cu PROPERTIES LANGUAGE HIP)\n"
            "  target_link_libraries(k hip::host roc::hipblas)\nendif()\n");
}

// A folder below the project's has no project() that would tell a second run.
TEST(CMakeFile, ASubdirectory) {
  EXPECT_EQ(Ported("file(GLOB s k/*.cu k/*.cuh)\n"),
            "file(GLOB s k/*.cu k/*.cuh)\nset_source_files_properties(${s} PROPERTIES LANGUAGE HIP)\n");
  EXPECT_EQ(Ported("file(GLOB s k/*.cu)\nadd_library(k ${s} x.cu)\n"),
            "file(GLOB s k/*.cu)\nset_source_files_properties(${s} PROPERTIES LANGUAGE HIP)\n"
            "add_library(k ${s} x.cu)\nset_source_files_properties(x.cu PROPERTIES LANGUAGE HIP)\n");
}

TEST(CMakeFile, SaysWhatItDoesNotUnderstand) {
  EXPECT_EQ(Left("project(a CUDA)\nset_target_properties(a PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n"
                 "cuda_select_nvcc_arch_flags(f)\ntarget_link_libraries(a CUDA::nvml)\nfile(GLOB s *.cu *.cpp)\n"),
            (std::vector<std::string>{"2: CMake's HIP language has no CUDA_SEPARABLE_COMPILATION",
                                      "3: 'cuda_select_nvcc_arch_flags' belongs to CUDA's CMake module",
                                      "4: 'CUDA::nvml' has no counterpart that is known here",
                                      "5: collects .cu files together with others"}));
}

// What is the project's own, is in a comment or has a HIP build stays byte for byte.
TEST(CMakeFile, LeavesTheRest) {
  for (const std::string text :
       {"option(USE_CUDA \"CUDA build\" ON)\nif(USE_CUDA)\n  add_subdirectory(cuda)\nendif()\n",
        "# project(x LANGUAGES CUDA)\n#[[ find_package(CUDA) ]]\nproject(cuda_tools CXX)\n",
        "set(MY_CUDA_SOURCES a.cpp)\r\nadd_library(x ${MY_CUDA_SOURCES})\r\n",
        "if(USE_ROCM)\n  find_package(hip)\nelse()\n  enable_language(CUDA)\n  find_package(CUDAToolkit)\nendif()\n",
        "if(USE_ROCM)\n  hipify(CUDA_SOURCE_DIR ${PROJECT_SOURCE_DIR})\nelse()\n  find_package(CUDAToolkit)\nendif()\n",
        "project(CUDA CXX)\nmessage(\"CUDA_HOME ${CUDA_HOME}\")\n", "target_link_libraries(x \"unclosed cuda\n",
        "add_library(a b.cuh) # .cuda\n"}) {
    EXPECT_EQ(Ported(text), text);
    EXPECT_EQ(Left(text), std::vector<std::string>()) << text;
  }
}

// Law: any beginning of a file is ported without a crash, and porting twice is porting once.
TEST(CMakeFile, CutFiles) {
  const std::string text =
      "project(a LANGUAGES CUDA)\nset(CMAKE_CUDA_FLAGS \"-arch=sm_80 \\\"x\\\" [[\" ${v})\n#[=[ c ]=]\nadd_library(k "
      "k.cu)\n";
  for (size_t size = 0; size <= text.size(); ++size) Ported(text.substr(0, size));
}

}  // namespace
}  // namespace portolan
