// The text of a shim. One header holds what macros and functions can say; the forwarding headers include it and then
// ROCm's. ROCm's own headers must not see the names that the shim gives another meaning (__shfl_sync, __CUDACC__,
// __launch_bounds__ ...), so portolan/off.h takes these away around each include of one.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "porting/compat.h"
#include "porting/shim.h"
#include "porting/shim_marks.h"

namespace portolan {
namespace {

// What is defined otherwise than by an alias, and why. `text` is C++ for the shim's header; empty where the prelude or
// a forwarding header does it.
struct MacroText {
  std::string_view name;
  std::string_view text;
  bool hidden;  // from ROCm's headers
};

constexpr std::array<MacroText, 15> kMacros = {{
    {"__CUDA_ARCH__",
     "// HIP's compiler does not define it. Device code takes the paths of a chip with independent warps, half "
     "precision\n"
     "// and double atomics, not those written in the PTX of later ones.\n"
     "#if defined(__HIP_DEVICE_COMPILE__) && !defined(__CUDA_ARCH__)\n#define __CUDA_ARCH__ 700\n#endif\n",
     true},
    {"__CUDACC__",
     "// HIP's compiler does not define it: code under it would be lost.\n"
     "#if defined(__HIPCC__) && !defined(__CUDACC__)\n#define __CUDACC__ 1\n#endif\n",
     true},
    {"__NVCC__",
     "// HIP's compiler does not define it: code under it would be lost.\n"
     "#if defined(__HIPCC__) && !defined(__NVCC__)\n#define __NVCC__ 1\n#endif\n",
     true},
    {"CUDA_VERSION",
     "// What came with CUDA 12.1 and later has no counterpart to count on.\n"
     "#ifndef CUDA_VERSION\n#define CUDA_VERSION 12000\n#endif\n",
     true},
    {"CUDART_VERSION",
     "// What came with CUDA 12.1 and later has no counterpart to count on.\n"
     "#ifndef CUDART_VERSION\n#define CUDART_VERSION 12000\n#endif\n",
     true},
    {"__CUDACC_VER_MAJOR__", "#ifndef __CUDACC_VER_MAJOR__\n#define __CUDACC_VER_MAJOR__ 12\n#endif\n", true},
    {"__CUDACC_VER_MINOR__", "#ifndef __CUDACC_VER_MINOR__\n#define __CUDACC_VER_MINOR__ 2\n#endif\n", true},
    {"__grid_constant__",
     "// Kernel parameters are in constant memory anyway.\n"
     "#ifndef __grid_constant__\n#define __grid_constant__\n#endif\n",
     false},
    {"__nv_pure__", "// A hint to CUDA's compiler.\n#ifndef __nv_pure__\n#define __nv_pure__\n#endif\n", false},
    {"register",
     "// CUDA's compiler still takes the word in C++17, which has it no longer.\n"
     "#if defined(__cplusplus) && __cplusplus >= 201703L\n#define register\n#endif\n",
     false},
    {"__launch_bounds__", "", true},
    {"warpSize", "", false},
    {"thrust::cuda", "", false},
    {"cub::WarpReduce", "", false},
    {"cub::WarpScan", "", false},
}};

constexpr std::array<std::string_view, 3> kAtomics = {"atomicAdd", "atomicMax", "atomicMin"};

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// Names that ROCm's headers use themselves, as against CUDA's own prefixes, which they never do.
bool HiddenFromRocm(std::string_view name) {
  for (const std::string_view prefix :
       {"cuda", "cublas", "curand", "cusparse", "cusolver", "cufft", "nvrtc", "CU", "NVRTC", "__nv_", "__NV_"}) {
    if (StartsWith(name, prefix)) return false;
  }
  return true;
}

std::vector<std::string> HiddenNames(const Shim& shim) {
  std::vector<std::string> names;
  for (const auto& [name, text] : shim.aliases) {
    if (HiddenFromRocm(name)) names.push_back(name);
  }
  for (const MacroText& macro : kMacros) {
    if (macro.hidden && macro.name != "__launch_bounds__" && shim.macros.count(macro.name) > 0) {
      names.emplace_back(macro.name);
    }
  }
  return names;
}

bool HasBounds(const Shim& shim) { return shim.macros.count("__launch_bounds__") > 0; }

constexpr std::string_view kBoundsOn =
    "#pragma push_macro(\"__launch_bounds__\")\n"
    "#undef __launch_bounds__\n"
    "#define __launch_bounds__(...) \\\n"
    "  PORTOLAN_BOUNDS(__VA_ARGS__, PORTOLAN_BOUNDS_3, PORTOLAN_BOUNDS_2, PORTOLAN_BOUNDS_1, 0)(__VA_ARGS__)\n";

// What must happen around the first include of HIP's runtime header.
std::string Prelude(const Shim& shim) {
  std::string before;
  std::string after;
  const auto rename = [&](std::string_view name) {
    before += fmt::format("#define {} portolan_hip_{}\n", name, name);
    after += fmt::format("#undef {}\n", name);
  };
  for (const std::string_view name : kAtomics) {
    if (shim.macros.count(name) > 0) rename(name);
  }
  const bool warp_size = shim.macros.count("warpSize") > 0;
  if (warp_size) rename("warpSize");
  if (before.empty()) return "#include <hip/hip_runtime.h>\n";
  std::string text =
      "#ifdef HIP_INCLUDE_HIP_HIP_RUNTIME_H\n"
      "#error \"include CUDA's headers before HIP's, or compile with -include portolan_shim.h\"\n"
      "#endif\n"
      "#include <hip/hip_runtime_api.h>  // hipDeviceProp_t has a warpSize too, which keeps its name\n" +
      before + "#include <hip/hip_runtime.h>\n" + after;
  if (warp_size) {
    text +=
        "// HIP's is 64 and from ROCm 7 no constant; the warps of this project have 32 lanes.\n"
        "static constexpr int warpSize = 32;\n";
  }
  bool first = true;
  for (const std::string_view name : kAtomics) {
    if (shim.macros.count(name) == 0) continue;
    if (first) {
      text +=
          "// The project defines overloads that HIP has too. As a template, HIP's loses against them.\n"
          "#ifdef __HIPCC__\n"
          "namespace portolan {\n"
          "template <typename T>\n"
          "struct same {\n"
          "  using type = T;\n"
          "};\n"
          "}  // namespace portolan\n"
          "#endif\n";
    }
    first = false;
    text += fmt::format(
        "#ifdef __HIPCC__\n"
        "template <typename T>\n"
        "__device__ inline T {0}(T *address, typename portolan::same<T>::type value) {{\n"
        "  return portolan_hip_{0}(address, value);\n"
        "}}\n"
        "#endif\n",
        name);
  }
  return text;
}

std::string MainHeader(const Shim& shim, const PortTarget& target) {
  std::string text = fmt::format(
      "// Generated by Portolan for {}, ROCm {}.{}: what this project uses of CUDA and HIP does not have, or has with\n"
      "// another name or meaning. `portolan port --shim-only` writes it anew; do not edit.\n",
      target.gfx, target.rocm / 100, target.rocm % 100);
  if (!shim.left.empty()) {
    text += "//\n// What no header can do, and has to be changed in the sources:\n";
    for (const auto& [what, count] : shim.left) text += fmt::format("{}{} {}\n", kShimLeftMark, count, what);
  }
  text += "#ifndef PORTOLAN_SHIM_H\n#define PORTOLAN_SHIM_H\n\n";
  for (const std::string& macro : shim.macros) {
    const bool known = std::any_of(kMacros.begin(), kMacros.end(), [&](const MacroText& m) { return m.name == macro; });
    const bool atomic = std::find(kAtomics.begin(), kAtomics.end(), macro) != kAtomics.end();
    if (known || atomic) continue;
    text += fmt::format("// The sources tell a ROCm build by it.\n#ifndef {0}\n#define {0} 1\n#endif\n", macro);
  }
  text +=
      "// HIP's headers ask for it where another compiler than HIP's reads them.\n"
      "#if !defined(__HIP_PLATFORM_AMD__) && !defined(__HIP_PLATFORM_NVIDIA__)\n"
      "#define __HIP_PLATFORM_AMD__ 1\n"
      "#endif\n"
      "// cuBLAS's types of data and of computation are two; hipBLAS's are so in its second interface.\n"
      "#ifndef HIPBLAS_V2\n#define HIPBLAS_V2\n#endif\n\n"
      "#ifdef __cplusplus\n" +
      Prelude(shim) + "#else\n#include <hip/hip_runtime_api.h>\n#endif\n";
  std::set<std::string> parts;
  for (const std::string& part : shim.parts) parts.insert(part);
  for (const auto& [name, header] : shim.headers) {
    for (const std::string& part : header.parts) parts.erase(part);
  }
  if (!parts.empty()) text += "\n#ifdef __HIPCC__\n" + CompatPartsText(parts) + "\n#endif  // __HIPCC__\n";
  text += "\n";
  for (const MacroText& macro : kMacros) {
    if (shim.macros.count(macro.name) == 0) continue;
    text += fmt::format("{}{}\n", kShimMacroMark, macro.name);
    text += macro.text;
  }
  for (const std::string_view name : kAtomics) {
    if (shim.macros.count(name) > 0) text += fmt::format("{}{}\n", kShimMacroMark, name);
  }
  if (HasBounds(shim)) {
    text +=
        "// CUDA's second launch bound is blocks a multiprocessor, HIP's is waves a SIMD; CUDA's third, blocks a "
        "cluster,\n"
        "// means nothing here.\n"
        "#if defined(__HIPCC__)\n"
        "#define PORTOLAN_BOUNDS(a, b, c, name, ...) name\n"
        "#define PORTOLAN_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))\n"
        "#define PORTOLAN_BOUNDS_2(threads, blocks)                        \\\n"
        "  __attribute__((amdgpu_flat_work_group_size(1, threads),         \\\n"
        "                 amdgpu_waves_per_eu(PORTOLAN_WAVES(threads, blocks))))\n"
        "#define PORTOLAN_BOUNDS_3(threads, blocks, cluster) PORTOLAN_BOUNDS_2(threads, blocks)\n";
    text += std::string(kBoundsOn) + "#endif\n";
  }
  text += "\n" + std::string(kShimAliasMark) + "\n";
  for (const auto& [name, value] : shim.aliases) text += fmt::format("#define {} {}\n", name, value);
  text += "\n#endif  // PORTOLAN_SHIM_H\n";
  return text;
}

std::string OffHeader(const Shim& shim) {
  std::string text = "// Generated by Portolan: around an include of ROCm's, names have ROCm's meaning.\n";
  for (const std::string& name : HiddenNames(shim)) {
    text += fmt::format("#pragma push_macro(\"{0}\")\n#undef {0}\n", name);
  }
  if (HasBounds(shim)) text += "#if defined(__HIPCC__)\n#pragma pop_macro(\"__launch_bounds__\")\n#endif\n";
  return text;
}

std::string OnHeader(const Shim& shim) {
  std::string text = "// Generated by Portolan: behind an include of ROCm's, names have the project's meaning again.\n";
  for (const std::string& name : HiddenNames(shim)) text += fmt::format("#pragma pop_macro(\"{}\")\n", name);
  if (HasBounds(shim)) text += "#if defined(__HIPCC__)\n" + std::string(kBoundsOn) + "#endif\n";
  return text;
}

std::string Epilog(const std::string& name, const Shim& shim) {
  if (name == "wmma") {
    return "#ifndef PORTOLAN_WMMA\n#define PORTOLAN_WMMA\n"
           "// rocWMMA's fragments have the interface of CUDA's for most shapes.\n"
           "namespace nvcuda {\nnamespace wmma = rocwmma;\n}  // namespace nvcuda\n#endif\n";
  }
  if (name == "thrust_cuda") {
    return "#ifndef PORTOLAN_THRUST_CUDA\n#define PORTOLAN_THRUST_CUDA\n"
           "// Thrust's policies for a stream live in thrust::hip.\n"
           "namespace thrust {\nnamespace cuda = hip;\n}  // namespace thrust\n#endif\n";
  }
  std::string text =
      "#ifndef PORTOLAN_CUB\n#define PORTOLAN_CUB\n"
      "// No alias: what follows differs from hipCUB.\n"
      "namespace cub {\nusing namespace hipcub;\n";
  for (const std::string_view warp : {"WarpReduce", "WarpScan"}) {
    if (shim.macros.count("cub::" + std::string(warp)) == 0) continue;
    text += fmt::format(
        "// A logical warp has 32 threads where nothing is said; hipCUB's has the wave's 64.\n"
        "template <typename T, int kThreads = 32, int kArch = 0>\n"
        "class {0} : public hipcub::{0}<T, kThreads> {{\n"
        " public:\n"
        "  using hipcub::{0}<T, kThreads>::{0};\n"
        "}};\n",
        warp);
  }
  return text + "}  // namespace cub\n#endif\n";
}

std::string ForwardingHeader(const std::string& name, ShimHeader header, const Shim& shim, bool has_off) {
  if (StartsWith(name, "thrust/") && shim.macros.count("thrust::cuda") > 0) {
    header.epilogs.insert("thrust_cuda");
    header.extras.insert("thrust/system/hip/execution_policy.h");
  }
  std::string text =
      fmt::format("// Generated by Portolan: stands {} {}.\n", header.next ? "before ROCm's" : "for CUDA's", name);
  std::string include =
      header.hip.empty() ? "" : fmt::format("#{} <{}>\n", header.next ? "include_next" : "include", header.hip);
  std::string body;
  if (has_off) body += fmt::format("#include <{}>\n", kShimOffName);
  body += include;
  for (const std::string& extra : header.extras) body += fmt::format("#include <{}>\n", extra);
  if (has_off) body += fmt::format("#include <{}>\n", kShimOnName);
  std::set<std::string> parts(header.parts.begin(), header.parts.end());
  std::string behind;
  if (!parts.empty()) behind += "#ifdef __HIPCC__\n" + CompatPartsText(parts) + "#endif\n";
  for (const std::string& epilog : header.epilogs) behind += Epilog(epilog, shim);
  if (!behind.empty()) behind = "#ifdef __cplusplus\n" + behind + "#endif\n";
  if (!header.next) {
    return text + "#pragma once\n#include <portolan_shim.h>\n" + body + behind;
  }
  // ROCm's headers include one another, and find this one first.
  return text + "#ifdef PORTOLAN_IN_ROCM\n" + include +
         "#else\n#include <portolan_shim.h>\n#define PORTOLAN_IN_ROCM\n" + body + "#undef PORTOLAN_IN_ROCM\n" + behind +
         "#endif\n";
}

}  // namespace

std::map<std::string, std::string> ShimFiles(const Shim& shim, const PortTarget& target, const std::string& sources) {
  std::map<std::string, std::string> files;
  if (shim.Empty()) return files;
  const bool has_off = !HiddenNames(shim).empty() || HasBounds(shim);
  files[kShimHeaderName] = MainHeader(shim, target);
  files["portolan_shim.mk"] = ShimMakefile(shim, target);
  files["portolan_shim.cmake"] = ShimCmake(shim, target);
  if (has_off) {
    files[kShimOffName] = OffHeader(shim);
    files[kShimOnName] = OnHeader(shim);
  }
  if (!shim.copies.empty()) files[kShimOverlayName] = ShimOverlay(shim, sources);
  for (const auto& [name, text] : shim.copies) files[std::string(kShimCopyFolder) + name] = text;
  for (const auto& [name, header] : shim.headers) {
    // A header that is ROCm's by name too needs none before it where nothing is hidden from it or added to it.
    const bool plain = header.next && !has_off && header.extras.empty() &&
                       !(StartsWith(name, "thrust/") && shim.macros.count("thrust::cuda") > 0);
    if (!plain) files[name] = ForwardingHeader(name, header, shim, has_off);
  }
  return files;
}

}  // namespace portolan
