#include "porting/names.h"

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
constexpr std::array<Family, 28> kFamilies = {{
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
  replace("BlocksPerMultiprocessor", "BlocksPerMultiProcessor");
  return result;
}

}  // namespace

NameMapping MapName(std::string_view cuda) {
  if (cuda.size() < 3) return {};
  if (const auto it = Names().find(cuda); it != Names().end()) return {it->second.fate, std::string(it->second.hip)};
  if (cuda[0] != 'c' && cuda[0] != 'C' && cuda[0] != 'n' && cuda[0] != 'N') return {};
  for (const Prefix& prefix : kPrefixes) {
    if (cuda.substr(0, prefix.cuda.size()) != prefix.cuda || cuda.size() == prefix.cuda.size()) continue;
    if (prefix.upper_next && !IsUpper(cuda[prefix.cuda.size()])) continue;
    return {NameFate::kMapped, std::string(prefix.hip) + std::string(cuda.substr(prefix.cuda.size()))};
  }
  for (const Family& family : kFamilies) {
    if (cuda.substr(0, family.cuda.size()) != family.cuda || cuda.size() == family.cuda.size()) continue;
    const std::string_view rest = cuda.substr(family.cuda.size());
    return {NameFate::kMapped, std::string(family.hip) + (family.camel ? CamelCase(rest) : std::string(rest))};
  }
  // CUdevice_attribute_enum and CUmemLocation_st are the tags of CUdevice_attribute and CUmemLocation.
  for (const std::string_view tag : {"_enum", "_st", "_v1", "_v2"}) {
    if (cuda.substr(0, 2) != "CU" || cuda.size() <= tag.size() || cuda.substr(cuda.size() - tag.size()) != tag)
      continue;
    const auto it = Names().find(cuda.substr(0, cuda.size() - tag.size()));
    if (it != Names().end()) return {it->second.fate, std::string(it->second.hip)};
  }
  return {};
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
