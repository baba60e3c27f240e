#include "porting/to_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "porting/names.h"

namespace portolan {
namespace {

struct Pair {
  std::string_view cuda;
  std::string_view hip;
};

constexpr Pair kNames[] = {
#define NAME(cuda, hip) {cuda, hip},
#define GONE(cuda, advice)
#include "porting/names.inc"
#undef NAME
#undef GONE
};

constexpr Pair kHeaders[] = {
#define HEADER(cuda, hip) {cuda, hip},
#include "porting/headers.inc"
#undef HEADER
};

// HIP's names begin with one of these, longest first; the CUDA prefix takes its place. "hip" alone is the runtime.
constexpr std::array<Pair, 19> kPrefixes = {{{"cudaDevAttr", "hipDeviceAttribute"},
                                             {"cublasLt", "hipblasLt"},
                                             {"CUBLASLT_", "HIPBLASLT_"},
                                             {"cublas", "hipblas"},
                                             {"CUBLAS_", "HIPBLAS_"},
                                             {"curand", "hiprand"},
                                             {"CURAND_", "HIPRAND_"},
                                             {"cusparse", "hipsparse"},
                                             {"CUSPARSE_", "HIPSPARSE_"},
                                             {"cusolver", "hipsolver"},
                                             {"CUSOLVER_", "HIPSOLVER_"},
                                             {"cufft", "hipfft"},
                                             {"CUFFT_", "HIPFFT_"},
                                             {"nvrtc", "hiprtc"},
                                             {"NVRTC_", "HIPRTC_"},
                                             {"CUDA_R_", "HIP_R_"},
                                             {"CUDA_C_", "HIP_C_"},
                                             {"CUDA_RESOURCE_", "HIP_RESOURCE_"},
                                             {"cuda", "hip"}}};

// Functions that only CUDA's driver interface has.
constexpr std::array<std::string_view, 15> kDriver = {
    "hipModule",     "hipCtx",        "hipLink",       "hipMemAddress",       "hipMemCreate",
    "hipMemMap",     "hipMemUnmap",   "hipMemRelease", "hipMemSetAccess",     "hipMemcpyHtoD",
    "hipMemcpyDtoH", "hipMemcpyDtoD", "hipMemsetD",    "hipDevicePrimaryCtx", "hipDeviceComputeCapability"};

// Functions of complex numbers, each with a form for float.
constexpr std::array<std::string_view, 9> kComplex = {"hipCreal", "hipCimag", "hipCadd", "hipCsub", "hipCmul",
                                                      "hipCdiv",  "hipCabs",  "hipCfma", "hipConj"};

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// Types that only the driver interface has, and of names that become one of HIP's the one that is not the older.
constexpr std::array<Pair, 16> kOneOfSeveral = {
    {{"CUmodule", "hipModule_t"},
     {"CUfunction", "hipFunction_t"},
     {"CUcontext", "hipCtx_t"},
     {"CUdevice", "hipDevice_t"},
     {"CUdeviceptr", "hipDeviceptr_t"},
     {"cudaError_t", "hipError_t"},
     {"cudaErrorInvalidValue", "hipErrorInvalidValue"},
     {"cudaDeviceScheduleBlockingSync", "hipDeviceScheduleBlockingSync"},
     {"cudaDevAttrAsyncEngineCount", "hipDeviceAttributeAsyncEngineCount"},
     {"cudaGraphExecUpdateResult", "hipGraphExecUpdateResult"},
     {"cudaExternalSemaphoreSignalNodeParams", "hipExternalSemaphoreSignalNodeParams"},
     {"cudaExternalSemaphoreWaitNodeParams", "hipExternalSemaphoreWaitNodeParams"},
     {"cublasStatus_t", "hipblasStatus_t"},
     {"CUBLAS_OP_C", "HIPBLAS_OP_C"},
     {"CUBLAS_GEMM_DEFAULT", "HIPBLAS_GEMM_DEFAULT"},
     {"curandRngType_t", "hiprandRngType_t"}}};

// Of the names that become `hip`, the one to go back to: the driver's (cuMemAlloc, CUstream, CU_LIMIT_X) and the
// deprecated cudaThreadSynchronize are none.
bool IsPreferred(std::string_view cuda) {
  const bool function =
      cuda.size() > 2 && StartsWith(cuda, "cu") && IsUpper(cuda[2]) && cuda.find("Complex") == std::string_view::npos;
  const bool type = cuda.size() > 2 && StartsWith(cuda, "CU") && !IsUpper(cuda[2]);
  const bool versioned = cuda.size() > 3 && cuda.substr(cuda.size() - 3) == "_v2";
  return !function && !type && !versioned && !StartsWith(cuda, "cudaThread") && !StartsWith(cuda, "CUDA_");
}

const std::unordered_map<std::string_view, std::string_view>& Inverse() {
  static const auto* inverse = [] {
    auto* names = new std::unordered_map<std::string_view, std::string_view>();
    for (const bool preferred : {true, false}) {
      for (const Pair& pair : kNames) {
        if (IsPreferred(pair.cuda) == preferred) names->emplace(pair.hip, pair.cuda);
      }
    }
    return names;
  }();
  return *inverse;
}

std::string ByPrefix(std::string_view hip) {
  if (hip == "hipInit" || hip == "hipDeviceGet" || hip == "hipDeviceGetName" || hip == "hipDeviceTotalMem" ||
      std::any_of(kDriver.begin(), kDriver.end(), [&](std::string_view start) { return StartsWith(hip, start); })) {
    return "cu" + std::string(hip.substr(3));
  }
  for (const std::string_view function : kComplex) {  // hipCmulf is cuCmulf
    if (hip == function || (hip.size() == function.size() + 1 && StartsWith(hip, function) && hip.back() == 'f')) {
      return "cu" + std::string(hip.substr(3));
    }
  }
  for (const Pair& prefix : kPrefixes) {
    if (!StartsWith(hip, prefix.hip) || hip.size() == prefix.hip.size()) continue;
    const char next = hip[prefix.hip.size()];
    const bool upper = prefix.hip.back() == '_' || IsUpper(next) || (next == '_' && prefix.hip == "hiprand");
    if (upper) return std::string(prefix.cuda) + std::string(hip.substr(prefix.hip.size()));
  }
  return "";
}

class Porter {
 public:
  Porter(const SourceFile& source, const ProjectFacts& project, const PortTarget& target)
      : source_(source), project_(project), target_(target) {}

  PortedSource Run() {
    for (size_t i = 0; i < source_.size(); ++i) {
      const TokenKind kind = source_.tokens()[i].kind;
      if ((kind == TokenKind::kHeaderName || kind == TokenKind::kString) && i > 0 && source_.Is(i - 1, "include")) {
        PortHeader(i);
      } else if (kind == TokenKind::kIdentifier && project_.own_names.count(source_.Text(i)) == 0) {
        PortName(i);
      }
    }
    output_.text = ApplyEdits(source_.text(), std::move(edits_));
    return std::move(output_);
  }

 private:
  void Replace(size_t token, std::string text) {
    edits_.push_back({source_.tokens()[token].begin, source_.tokens()[token].end, std::move(text)});
  }

  void Find(size_t token, FindingLevel level, std::string message, std::string action) {
    output_.findings.push_back({source_.path(), source_.PositionOf(source_.tokens()[token].begin), level, "to-cuda",
                                std::move(message), std::move(action)});
  }

  void PortHeader(size_t i) {
    const std::string_view whole = source_.Text(i);
    if (whole.size() < 3) return;
    const std::string_view name = whole.substr(1, whole.size() - 2);
    if (project_.file_names.count(name.substr(name.rfind('/') + 1)) > 0 && whole[0] == '"') return;
    const std::string cuda = HipToCudaHeader(name);
    if (!cuda.empty()) {
      Replace(i, fmt::format("{}{}{}", whole[0], cuda, whole.back()));
    } else if (StartsWith(name, "roc") || StartsWith(name, "hip/") || StartsWith(name, "miopen/")) {
      Find(i, FindingLevel::kError, fmt::format("CUDA has no '{}'", name), "write this part for CUDA by hand");
    }
  }

  // hipLaunchKernelGGL(kernel, grid, block, bytes, stream, arguments...) becomes kernel<<<...>>>(arguments...).
  bool PortLaunch(size_t i) {
    const auto arguments = source_.Arguments(i + 1);
    const size_t close = source_.Closing(i + 1);
    if (arguments.size() < 5 || close >= source_.size()) return false;
    auto [begin, end] = arguments[0];
    if (source_.Is(begin, "HIP_KERNEL_NAME") && source_.Is(begin + 1, "(") && source_.Closing(begin + 1) + 1 == end) {
      begin += 2;
      --end;
    } else if (source_.Is(begin, "(") && source_.Closing(begin) + 1 == end) {
      ++begin;
      --end;
    }
    if (begin >= end) return false;
    const auto& tokens = source_.tokens();
    // What stands between keeps its place, so that names inside it are still ported.
    edits_.push_back({tokens[i].begin, tokens[begin].begin, ""});
    edits_.push_back({tokens[end - 1].end, tokens[arguments[1].first].begin, "<<<"});
    const size_t stream_end = arguments[4].second;
    if (arguments.size() == 5) {
      edits_.push_back({tokens[stream_end - 1].end, tokens[close].begin, ">>>("});
    } else {
      edits_.push_back({tokens[stream_end - 1].end, tokens[arguments[5].first].begin, ">>>("});
    }
    return true;
  }

  void PortName(size_t i) {
    const std::string_view name = source_.Text(i);
    const bool call = source_.Is(i + 1, "(");
    if (name == "hipLaunchKernelGGL") {
      if (call && !PortLaunch(i))
        Find(i, FindingLevel::kWarning, "a launch that was not understood", "write it as <<<...>>>");
      return;
    }
    if ((name == "HIP_SYMBOL" || name == "HIP_KERNEL_NAME") && call) {
      const size_t close = source_.Closing(i + 1);
      if (close >= source_.size() || close == i + 2) return;
      edits_.push_back({source_.tokens()[i].begin, source_.tokens()[i + 1].end, ""});
      edits_.push_back({source_.tokens()[close].begin, source_.tokens()[close].end, ""});
      return;
    }
    if (name == "HIP_DYNAMIC_SHARED" && call) {
      const auto arguments = source_.Arguments(i + 1);
      const size_t close = source_.Closing(i + 1);
      if (arguments.size() != 2 || close >= source_.size()) return;
      edits_.push_back(
          {source_.tokens()[i].begin, source_.tokens()[close].end,
           fmt::format("extern __shared__ {} {}[]{}", source_.Range(arguments[0].first, arguments[0].second),
                       source_.Range(arguments[1].first, arguments[1].second), source_.Is(close + 1, ";") ? "" : ";")});
      return;
    }
    if (name == "__HIPCC__") return Replace(i, "__CUDACC__");
    if (name == "__HIP_DEVICE_COMPILE__") return Replace(i, "__CUDA_ARCH__");
    if (name == "hipcub") return Replace(i, "cub");
    if (call && (name == "__shfl" || name == "__shfl_up" || name == "__shfl_down" || name == "__shfl_xor" ||
                 name == "__ballot" || name == "__any" || name == "__all")) {
      Find(i, FindingLevel::kError,
           fmt::format("CUDA has '{}_sync' with a mask, and warps of {} lanes", name, target_.wave_size),
           "name the lanes that take part, and check what counts on 64");
      return;
    }
    if (StartsWith(name, "__builtin_amdgcn_") || StartsWith(name, "rocblas") || StartsWith(name, "rocprim") ||
        StartsWith(name, "rocsparse") || StartsWith(name, "miopen")) {
      Find(i, FindingLevel::kError, fmt::format("CUDA has no '{}'", name), "write this part for CUDA by hand");
      return;
    }
    const std::string cuda = HipToCudaName(name);
    if (!cuda.empty()) Replace(i, cuda);
  }

  const SourceFile& source_;
  const ProjectFacts& project_;
  const PortTarget& target_;
  std::vector<Edit> edits_;
  PortedSource output_;
};

}  // namespace

std::string HipToCudaName(std::string_view hip) {
  if (hip.size() < 4 || (!StartsWith(hip, "hip") && !StartsWith(hip, "HIP") && Inverse().count(hip) == 0)) return "";
  for (const Pair& one : kOneOfSeveral) {
    if (one.hip == hip) return std::string(one.cuda);
  }
  const auto known = Inverse().find(hip);
  if (known != Inverse().end() && IsPreferred(known->second)) return std::string(known->second);
  // hipBLAS has a second form of some functions, cuBLAS the first alone.
  const bool second = hip.size() > 10 && StartsWith(hip, "hipblas") && hip.substr(hip.size() - 3) == "_v2";
  const std::string_view name = second ? hip.substr(0, hip.size() - 3) : hip;
  const std::string derived = ByPrefix(name);
  if (!derived.empty() && MapName(derived).text == name) return derived;
  return known != Inverse().end() ? std::string(known->second) : "";
}

std::string HipToCudaHeader(std::string_view header) {
  if (StartsWith(header, "hipcub/")) return "cub/cub.cuh";
  for (const Pair& pair : kHeaders) {
    if (pair.hip == header) return std::string(pair.cuda);
  }
  return "";
}

PortedSource PortSourceToCuda(const SourceFile& source, const ProjectFacts& project, const PortTarget& target) {
  return Porter(source, project, target).Run();
}

}  // namespace portolan
