#include "porting/toolchain.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "porting/process.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDeviceLibrary =
#include "porting/headers/device_library.hip.inc"
    ;
constexpr const char* kRuntime =
#include "porting/headers/hip_runtime.hip.inc"
    ;
constexpr const char* kRuntimeApi =
#include "porting/headers/hip_runtime_api.hip.inc"
    ;
constexpr const char* kVectorTypes =
#include "porting/headers/hip_vector_types.hip.inc"
    ;
constexpr const char* kDeviceFunctions =
#include "porting/headers/device_functions.hip.inc"
    ;
constexpr const char* kBfloat16 =
#include "porting/headers/hip_bf16.hip.inc"
    ;
constexpr const char* kFp8 =
#include "porting/headers/hip_fp8.hip.inc"
    ;
constexpr const char* kRccl =
#include "porting/headers/rccl.hip.inc"
    ;
constexpr const char* kComplex =
#include "porting/headers/hip_complex.hip.inc"
    ;
constexpr const char* kCooperativeGroups =
#include "porting/headers/hip_cooperative_groups.hip.inc"
    ;
constexpr const char* kHipcub =
#include "porting/headers/hipcub.hip.inc"
    ;
constexpr const char* kRocwmma =
#include "porting/headers/rocwmma.hip.inc"
    ;
constexpr const char* kThrust =
#include "porting/headers/thrust.hip.inc"
    ;
constexpr const char* kHipblas =
#include "porting/headers/hipblas.hip.inc"
    ;
constexpr const char* kHiprandKernel =
#include "porting/headers/hiprand_kernel.hip.inc"
    ;
constexpr const char* kMathConstants =
#include "porting/headers/hip_math_constants.hip.inc"
    ;
constexpr const char* kLibraryTypes =
#include "porting/headers/library_types.hip.inc"
    ;
constexpr const char* kHalf =
#include "porting/headers/hip_fp16.hip.inc"
    ;

// Clang names the wave size no more since release 20, which headers up to ROCm 6 ask for; a source tree of headers has
// no hip_version.h, which ROCm's build makes.
constexpr const char* kPrelude = R"(#pragma once
#if !defined(__AMDGCN_WAVEFRONT_SIZE)
#define __AMDGCN_WAVEFRONT_SIZE 64
#endif
#if !defined(__AMDGCN_WAVEFRONT_SIZE__)
#define __AMDGCN_WAVEFRONT_SIZE__ 64
#endif
)";

std::string VersionHeader(int rocm) {
  return fmt::format(
      "#pragma once\n#define HIP_VERSION_MAJOR {0}\n#define HIP_VERSION_MINOR {1}\n#define HIP_VERSION_PATCH 0\n"
      "#define HIP_VERSION ({0} * 10000000 + {1} * 100000)\n",
      rocm / 100, rocm % 100);
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Status Write(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) return MakeError(ErrorCode::kIo, fmt::format("cannot write '{}'", path.string()));
  return {};
}

std::string FindCompiler(const CompileOptions& options, const std::string& gfx, std::string* absent) {
  if (!options.compiler.empty()) {
    const std::string path = FindProgram(options.compiler);
    if (path.empty()) *absent = fmt::format("'{}' is not a program that can be run", options.compiler);
    return path;
  }
  std::vector<std::string> names;
  if (!options.rocm_path.empty()) {
    names.push_back(options.rocm_path + "/bin/amdclang++");
    names.push_back(options.rocm_path + "/llvm/bin/amdclang++");
    names.push_back(options.rocm_path + "/llvm/bin/clang++");
  }
  names.insert(names.end(), {"amdclang++", "clang++-22", "/usr/lib/llvm-22/bin/clang++"});
  // LLVM 19 stops before gfx950 ("invalid target ID").
  if (gfx != "gfx950") names.insert(names.end(), {"clang++-19", "/usr/lib/llvm-19/bin/clang++"});
  for (const std::string& name : names) {
    const std::string path = FindProgram(name);
    if (!path.empty()) return path;
  }
  *absent = fmt::format("no amdclang++, clang++-22{} found (Debian: apt-get install clang-22)",
                        gfx == "gfx950" ? "" : " or clang++-19");
  return "";
}

}  // namespace

Result<Toolchain> FindToolchain(const CompileOptions& options, const PortTarget& target, const std::string& folder) {
  Toolchain tools;
  tools.compiler = FindCompiler(options, target.gfx, &tools.absent);
  if (tools.compiler.empty()) return tools;
  tools.common_flags = {"-D__HIP_PLATFORM_AMD__=1", "-w", "-fno-caret-diagnostics", "-fno-color-diagnostics",
                        "-ferror-limit=20"};
  if (!options.rocm_path.empty() && Exists(fs::path(options.rocm_path) / "amdgcn" / "bitcode")) {
    tools.headers = "ROCm in " + options.rocm_path;
    tools.common_flags.push_back("--rocm-path=" + options.rocm_path);
    return tools;
  }
  const fs::path own(folder);
  PORTOLAN_RETURN_IF_ERROR(Write(own / "library" / "portolan_prelude.h", kPrelude));
  PORTOLAN_RETURN_IF_ERROR(Write(own / "library" / "portolan_device_library.h", kDeviceLibrary));
  const auto include = [&tools](const std::string& header) {
    tools.common_flags.push_back("-include");
    tools.common_flags.push_back(header);
  };
  tools.common_flags.push_back("-nogpuinc");
  include((own / "library" / "portolan_prelude.h").string());
  include("__clang_hip_runtime_wrapper.h");
  include((own / "library" / "portolan_device_library.h").string());
  tools.device_flags.push_back("-nogpulib");
  const std::string version = VersionHeader(target.rocm);
  if (!options.hip_include_dir.empty()) {
    tools.headers = "headers in " + options.hip_include_dir + ", device library of Portolan";
    tools.common_flags.insert(tools.common_flags.end(), {"-isystem", options.hip_include_dir});
    if (!Exists(fs::path(options.hip_include_dir) / "hip" / "hip_version.h")) {
      PORTOLAN_RETURN_IF_ERROR(Write(own / "version" / "hip" / "hip_version.h", version));
      tools.common_flags.insert(tools.common_flags.end(), {"-isystem", (own / "version").string()});
    }
    return tools;
  }
  tools.headers = "headers and device library of Portolan, no ROCm";
  const std::vector<std::pair<const char*, std::string_view>> headers = {
      {"hip/hip_version.h", version},
      {"hip/hip_runtime.h", kRuntime},
      {"hip/hip_runtime_api.h", kRuntimeApi},
      {"hip/hip_vector_types.h", kVectorTypes},
      {"hip/device_functions.h", kDeviceFunctions},
      {"hip/hip_fp16.h", kHalf},
      {"hip/hip_bf16.h", kBfloat16},
      {"hip/hip_fp8.h", kFp8},
      {"hip/hip_complex.h", kComplex},
      {"hip/hip_cooperative_groups.h", kCooperativeGroups},
      {"hip/hip_math_constants.h", kMathConstants},
      {"hip/library_types.h", kLibraryTypes},
      {"hipblas/hipblas.h", kHipblas},
      {"hipcub/hipcub.hpp", kHipcub},
      {"hiprand/hiprand_kernel.h", kHiprandKernel},
      {"rccl/rccl.h", kRccl},
      {"rocwmma/rocwmma.hpp", kRocwmma},
      {"thrust/adjacent_difference.h", kThrust},
      {"thrust/advance.h", kThrust},
      {"thrust/binary_search.h", kThrust},
      {"thrust/complex.h", kThrust},
      {"thrust/copy.h", kThrust},
      {"thrust/count.h", kThrust},
      {"thrust/detail/type_traits.h", kThrust},
      {"thrust/device_free.h", kThrust},
      {"thrust/device_malloc.h", kThrust},
      {"thrust/device_ptr.h", kThrust},
      {"thrust/device_reference.h", kThrust},
      {"thrust/device_vector.h", kThrust},
      {"thrust/distance.h", kThrust},
      {"thrust/equal.h", kThrust},
      {"thrust/execution_policy.h", kThrust},
      {"thrust/extrema.h", kThrust},
      {"thrust/fill.h", kThrust},
      {"thrust/find.h", kThrust},
      {"thrust/for_each.h", kThrust},
      {"thrust/functional.h", kThrust},
      {"thrust/gather.h", kThrust},
      {"thrust/generate.h", kThrust},
      {"thrust/host_vector.h", kThrust},
      {"thrust/inner_product.h", kThrust},
      {"thrust/iterator/constant_iterator.h", kThrust},
      {"thrust/iterator/counting_iterator.h", kThrust},
      {"thrust/iterator/discard_iterator.h", kThrust},
      {"thrust/iterator/iterator_traits.h", kThrust},
      {"thrust/iterator/permutation_iterator.h", kThrust},
      {"thrust/iterator/transform_iterator.h", kThrust},
      {"thrust/iterator/zip_iterator.h", kThrust},
      {"thrust/logical.h", kThrust},
      {"thrust/memory.h", kThrust},
      {"thrust/merge.h", kThrust},
      {"thrust/pair.h", kThrust},
      {"thrust/partition.h", kThrust},
      {"thrust/random.h", kThrust},
      {"thrust/random/linear_congruential_engine.h", kThrust},
      {"thrust/random/normal_distribution.h", kThrust},
      {"thrust/random/uniform_int_distribution.h", kThrust},
      {"thrust/random/uniform_real_distribution.h", kThrust},
      {"thrust/reduce.h", kThrust},
      {"thrust/remove.h", kThrust},
      {"thrust/replace.h", kThrust},
      {"thrust/reverse.h", kThrust},
      {"thrust/scan.h", kThrust},
      {"thrust/scatter.h", kThrust},
      {"thrust/sequence.h", kThrust},
      {"thrust/set_operations.h", kThrust},
      {"thrust/shuffle.h", kThrust},
      {"thrust/sort.h", kThrust},
      {"thrust/swap.h", kThrust},
      {"thrust/system/hip/execution_policy.h", kThrust},
      {"thrust/tabulate.h", kThrust},
      {"thrust/transform.h", kThrust},
      {"thrust/transform_reduce.h", kThrust},
      {"thrust/transform_scan.h", kThrust},
      {"thrust/tuple.h", kThrust},
      {"thrust/uninitialized_fill.h", kThrust},
      {"thrust/unique.h", kThrust},
      {"thrust/version.h", kThrust},
      {"thrust/zip_function.h", kThrust},
  };
  for (const auto& [name, text] : headers) {
    PORTOLAN_RETURN_IF_ERROR(Write(own / "include" / name, std::string(text)));
  }
  tools.common_flags.insert(tools.common_flags.end(), {"-isystem", (own / "include").string()});
  return tools;
}

}  // namespace portolan
