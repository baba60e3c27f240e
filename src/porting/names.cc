#include "porting/names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "porting/lexer.h"

namespace portolan {
namespace {

struct Entry {
  std::string_view hip;
  NameFate fate;
};

const std::unordered_map<std::string_view, Entry>& Names() {
  static const auto* names = new std::unordered_map<std::string_view, Entry>{
#define NAME(cuda, hip) {cuda, {hip, NameFate::kMapped}},
#define GONE(cuda, advice) {cuda, {advice, NameFate::kUnavailable}},
#include "porting/names.inc"
#undef NAME
#undef GONE
  };
  return *names;
}

const std::unordered_map<std::string_view, std::string_view>& Headers() {
  static const auto* headers = new std::unordered_map<std::string_view, std::string_view>{
#define HEADER(cuda, hip) {cuda, hip},
#include "porting/headers.inc"
#undef HEADER
  };
  return *headers;
}

struct Prefix {
  std::string_view cuda;
  std::string_view hip;
  bool upper_next;  // the character behind must be a capital letter (otherwise: anything)
};

// Longest first. CUDA_ and CU_ carry too many names of projects' own (CUDA_CHECK, CU_H), so only their known families.
constexpr std::array<Prefix, 25> kPrefixes = {{
    {"cudaDevAttr", "hipDeviceAttribute", true},
    {"cublasLt", "hipblasLt", true},
    {"cublasXt", "hipblasXt", true},
    {"cublas", "hipblas", true},
    {"CUBLASLT_", "HIPBLASLT_", false},
    {"CUBLAS_", "HIPBLAS_", false},
    {"curand", "hiprand", true},
    {"curand_", "hiprand_", false},
    {"CURAND_", "HIPRAND_", false},
    {"cusparse", "hipsparse", true},
    {"CUSPARSE_", "HIPSPARSE_", false},
    {"cusolver", "hipsolver", true},
    {"CUSOLVER_", "HIPSOLVER_", false},
    {"cufft", "hipfft", true},
    {"CUFFT_", "HIPFFT_", false},
    {"nvrtc", "hiprtc", true},
    {"NVRTC_", "HIPRTC_", false},
    {"cuda", "hip", true},
    {"CUDA_R_", "HIP_R_", false},
    {"CUDA_C_", "HIP_C_", false},
    {"CUDA_RESOURCE_", "HIP_RESOURCE_", false},
    {"CUDA_MEMCPY", "HIP_MEMCPY", false},
    {"CUDART_", "HIP_", false},
    {"CU_TR_", "HIP_TR_", false},
    {"cu", "hip", true},
}};

// Enumerators of the driver interface that HIP spells in its runtime's way (CU_EVENT_DEFAULT, hipEventDefault), longest
// first, and those that keep their capitals.
struct Family {
  std::string_view cuda;
  std::string_view hip;
  bool camel;
};
constexpr std::array<Family, 50> kFamilies = {{
    {"CU_DEVICE_P2P_ATTRIBUTE_", "hipDevP2PAttr", true},
    {"CU_DEVICE_ATTRIBUTE_", "hipDeviceAttribute", true},
    {"CUDA_ERROR_", "hipError", true},
    {"CU_EVENT_", "hipEvent", true},
    {"CU_STREAM_", "hipStream", true},
    {"CU_LIMIT_", "hipLimit", true},
    {"CU_MEMORYTYPE_", "hipMemoryType", true},
    {"CU_MEMPOOL_ATTR_", "hipMemPoolAttr", true},
    {"CU_MEM_ADVISE_", "hipMemAdvise", true},
    {"CU_MEM_ATTACH_", "hipMemAttach", true},
    {"CU_MEM_RANGE_ATTRIBUTE_", "hipMemRangeAttribute", true},
    {"CU_MEM_ACCESS_FLAGS_", "hipMemAccessFlags", true},
    {"CU_MEM_ALLOCATION_", "hipMemAllocation", true},
    {"CU_MEM_HANDLE_TYPE_", "hipMemHandleType", true},
    {"CU_MEM_LOCATION_TYPE_", "hipMemLocationType", true},
    {"CU_MEM_OPERATION_TYPE_", "hipMemOperationType", true},
    {"CU_ACCESS_PROPERTY_", "hipAccessProperty", true},
    {"CU_GRAPH_NODE_TYPE_", "hipGraphNodeType", true},
    {"CU_GRAPHICS_REGISTER_FLAGS_", "hipGraphicsRegisterFlags", true},
    {"CU_FUNC_CACHE_PREFER_", "hipFuncCachePrefer", true},
    {"CU_EXTERNAL_MEMORY_HANDLE_TYPE_", "hipExternalMemoryHandleType", true},
    {"CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_", "hipExternalSemaphoreHandleType", true},
    {"CU_OCCUPANCY_", "hipOccupancy", true},
    {"CU_COMPUTEMODE_", "hipComputeMode", true},
    {"CU_POINTER_ATTRIBUTE_", "HIP_POINTER_ATTRIBUTE_", false},
    {"CU_FUNC_ATTRIBUTE_", "HIP_FUNC_ATTRIBUTE_", false},
    {"CU_RES_VIEW_FORMAT_", "HIP_RES_VIEW_FORMAT_", false},
    {"CU_JIT_", "HIPRTC_JIT_", false},
    {"CU_AD_FORMAT_", "HIP_AD_FORMAT_", false},
    {"CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_", "hipArraySparseSubresourceType", true},
    {"CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_", "hipFlushGPUDirectRDMAWritesOption", true},
    {"CU_GL_DEVICE_LIST_", "hipGLDeviceList", true},
    {"CU_GPU_DIRECT_RDMA_WRITES_ORDERING_", "hipGPUDirectRDMAWritesOrdering", true},
    {"CU_GRAPH_DEBUG_DOT_FLAGS_", "hipGraphDebugDotFlags", true},
    {"CU_GRAPH_DEPENDENCY_TYPE_", "hipGraphDependencyType", true},
    {"CU_GRAPH_EXEC_UPDATE_", "hipGraphExecUpdate", true},
    {"CU_GRAPH_KERNEL_NODE_PORT_", "hipGraphKernelNodePort", true},
    {"CU_GRAPH_MEM_ATTR_", "hipGraphMemAttr", true},
    {"CU_GRAPH_USER_OBJECT_", "hipGraphUserObject", true},
    {"CU_IPC_MEM_", "hipIpcMem", true},
    {"CU_KERNEL_NODE_ATTRIBUTE_", "hipKernelNodeAttribute", true},
    {"CU_LAUNCH_ATTRIBUTE_", "hipLaunchAttribute", true},
    {"CU_USER_OBJECT_", "hipUserObject", true},
    {"CU_GET_PROC_ADDRESS_", "HIP_GET_PROC_ADDRESS_", false},
    {"CU_LAUNCH_PARAM_", "HIP_LAUNCH_PARAM_", false},
    {"CU_RESOURCE_TYPE_", "HIP_RESOURCE_TYPE_", false},
    {"CU_TRSA_", "HIP_TRSA_", false},
    {"CU_TRSF_", "HIP_TRSF_", false},
    {"CUSOLVERDN_", "HIPSOLVERDN_", false},
    {"CUSOLVERRF_", "HIPSOLVERRF_", false},
}};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// MAX_TEXTURE2D_WIDTH is MaxTexture2DWidth: a letter behind a digit stays a capital, HIP says Max, and MultiProcessor
// of threads.
std::string CamelCase(std::string_view words) {
  std::string result;
  bool capital = true;
  for (const char c : words) {
    if (c == '_') {
      capital = true;
      continue;
    }
    const bool digit = !result.empty() && result.back() >= '0' && result.back() <= '9';
    result.push_back(capital || digit || !IsUpper(c) ? c : static_cast<char>(c - 'A' + 'a'));
    capital = false;
  }
  const auto replace = [&result](std::string_view from, std::string_view to) {
    const size_t at = result.find(from);
    if (at != std::string::npos) result.replace(at, from.size(), to);
  };
  replace("Maximum", "Max");
  replace("ThreadsPerMultiprocessor", "ThreadsPerMultiProcessor");
  return result;
}

// The limits of textures and surfaces: HIP has one attribute for all sides of a kind (hipDeviceAttributeMaxSurface2D),
// except of plain textures.
std::string DeviceAttribute(std::string text) {
  const size_t kind = std::string_view("hipDeviceAttributeMax").size();
  if (text.compare(kind, 7, "Texture") != 0 && text.compare(kind, 7, "Surface") != 0) return text;
  if (const size_t at = text.find("Alternate"); at != std::string::npos) text.replace(at, 9, "Alt");
  if (const size_t at = text.find("cubemap"); at != std::string::npos) text[at] = 'C';
  const bool alternative = text.size() > 3 && text.compare(text.size() - 3, 3, "Alt") == 0;
  if (alternative) text.resize(text.size() - 3);
  size_t side = std::string::npos;
  for (const char* name : {"Width", "Height", "Depth", "Pitch"}) {
    const size_t length = std::string_view(name).size();
    if (text.size() > length && text.compare(text.size() - length, length, name) == 0) side = text.size() - length;
  }
  const bool plain = text.compare(kind, 7, "Texture") == 0 && side == kind + 9;  // Texture2D
  if (side != std::string::npos && (alternative || !plain)) text.resize(side);
  if (text.size() > 9 && text.compare(text.size() - 9, 9, "Mipmapped") == 0) text.resize(text.size() - 3);
  return alternative ? text + "Alt" : text;
}

// cuMemcpyHtoD_v2 and cublasSgemv_v2_64 without the version, which HIP's names have not; empty when there is none.
std::string WithoutVersion(std::string_view name) {
  const std::string_view wide = name.size() > 3 && name.substr(name.size() - 3) == "_64" ? "_64" : "";
  const std::string_view base = name.substr(0, name.size() - wide.size());
  if (base.size() < 6 || base.substr(base.size() - 3, 2) != "_v" || base.back() < '1' || base.back() > '9') return "";
  return std::string(base.substr(0, base.size() - 3)) + std::string(wide);
}

}  // namespace

NameMapping MapName(std::string_view cuda) {
  if (cuda.size() < 3) return {};
  if (const auto it = Names().find(cuda); it != Names().end()) return {it->second.fate, std::string(it->second.hip)};
  if (cuda[0] != 'c' && cuda[0] != 'C' && cuda[0] != 'n' && cuda[0] != 'N') return {};
  if (cuda.substr(0, 2) == "cu" || cuda.substr(0, 2) == "CU") {
    if (const std::string base = WithoutVersion(cuda); !base.empty()) return MapName(base);
    // CUdevice_attribute_enum and CUmemLocation_st are the tags of CUdevice_attribute and CUmemLocation.
    for (const std::string_view tag : {"_enum", "_st", "_union"}) {
      if (cuda.size() <= tag.size() || cuda.substr(cuda.size() - tag.size()) != tag) continue;
      const std::string_view base = cuda.substr(0, cuda.size() - tag.size());
      NameMapping mapping = MapName(base);
      return mapping.fate != NameFate::kNotVendor || cuda.substr(0, 4) != "cuda" ? mapping : NameMapping();
    }
  }
  for (const Prefix& prefix : kPrefixes) {
    if (cuda.substr(0, prefix.cuda.size()) != prefix.cuda || cuda.size() == prefix.cuda.size()) continue;
    if (prefix.upper_next && !IsUpper(cuda[prefix.cuda.size()])) continue;
    std::string text = std::string(prefix.hip) + std::string(cuda.substr(prefix.cuda.size()));
    if (prefix.cuda == "cudaDevAttr") text = DeviceAttribute(std::move(text));
    return {NameFate::kMapped, std::move(text)};
  }
  for (const Family& family : kFamilies) {
    if (cuda.substr(0, family.cuda.size()) != family.cuda || cuda.size() == family.cuda.size()) continue;
    const std::string_view rest = cuda.substr(family.cuda.size());
    std::string text = std::string(family.hip) + (family.camel ? CamelCase(rest) : std::string(rest));
    if (family.cuda == "CU_DEVICE_ATTRIBUTE_") text = DeviceAttribute(std::move(text));
    return {NameFate::kMapped, std::move(text)};
  }
  return {};
}

std::string HipblasSecondName(std::string_view hip) {
  constexpr std::string_view kPrefix = "hipblas";
  if (hip.substr(0, kPrefix.size()) != kPrefix) return "";
  const std::string_view wide = hip.size() > 3 && hip.substr(hip.size() - 3) == "_64" ? "_64" : "";
  std::string_view stem = hip.substr(kPrefix.size(), hip.size() - kPrefix.size() - wide.size());
  const auto second = [&] { return std::string(hip.substr(0, hip.size() - wide.size())) + "_v2" + std::string(wide); };
  constexpr std::array<std::string_view, 14> kAnyType = {"GemmEx", "GemmBatchedEx", "GemmStridedBatchedEx",
                                                         "AxpyEx", "DotEx",         "DotcEx",
                                                         "Nrm2Ex", "RotEx",         "ScalEx",
                                                         "TrsmEx", "Scnrm2",        "Dznrm2",
                                                         "Scasum", "Dzasum"};
  if (std::find(kAnyType.begin(), kAnyType.end(), stem) != kAnyType.end()) return second();
  for (const std::string_view layout : {"StridedBatched", "Batched"}) {
    if (stem.size() > layout.size() && stem.substr(stem.size() - layout.size()) == layout) {
      stem.remove_suffix(layout.size());
      break;
    }
  }
  if (stem.empty() || (stem[0] != 'C' && stem[0] != 'Z' && stem[0] != 'I')) return "";
  constexpr std::array<std::string_view, 52> kComplex = {
      "axpy",  "copy",  "dgmm",  "dotc",  "dotu",  "gbmv",  "geam", "gels", "gemm",  "gemv", "geqrf", "gerc", "geru",
      "getrf", "getri", "getrs", "hbmv",  "hemm",  "hemv",  "her",  "her2", "her2k", "herk", "herkx", "hpmv", "hpr",
      "hpr2",  "rot",   "rotg",  "scal",  "sscal", "dscal", "spr",  "srot", "drot",  "swap", "symm",  "symv", "syr",
      "syr2",  "syr2k", "syrk",  "syrkx", "tbmv",  "tbsv",  "tpmv", "tpsv", "trmm",  "trmv", "trsm",  "trsv", "trtri"};
  if (stem == "Icamax" || stem == "Icamin" || stem == "Izamax" || stem == "Izamin") return second();
  if (stem[0] == 'I') return "";
  return std::find(kComplex.begin(), kComplex.end(), stem.substr(1)) != kComplex.end() ? second() : "";
}

NameMapping MapHeader(std::string_view header) {
  if (const auto it = Headers().find(header); it != Headers().end()) {
    return {NameFate::kMapped, std::string(it->second)};
  }
  if (header.substr(0, 4) == "cub/") return {NameFate::kMapped, "hipcub/hipcub.hpp"};
  if (header.substr(0, 19) == "thrust/system/cuda/") {
    return {NameFate::kMapped, "thrust/system/hip/" + std::string(header.substr(19))};
  }
  return {};
}

HipDeclarations HipDeclarations::Read(const std::string& include_dir) {
  namespace fs = std::filesystem;
  HipDeclarations declarations;
  std::error_code error;
  if (!fs::exists(fs::path(include_dir) / "hip" / "hip_runtime_api.h", error)) return declarations;
  for (const char* library :
       {"hip", "hipblas", "hipblas-common", "hipblaslt", "hiprand", "hipsparse", "hipfft", "hipsolver"}) {
    const fs::path folder = fs::path(include_dir) / library;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string extension = it->path().extension().string();
      if (!it->is_regular_file(error) || (extension != ".h" && extension != ".hpp")) continue;
      std::ifstream file(it->path(), std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      for (const Token& token : Lex(text)) {
        if (token.kind != TokenKind::kIdentifier) continue;
        const std::string_view name = std::string_view(text).substr(token.begin, token.end - token.begin);
        if (name.find("hip") != std::string_view::npos || name.find("HIP") != std::string_view::npos) {
          declarations.names_.emplace(name);
        }
      }
    }
  }
  return declarations;
}

}  // namespace portolan
