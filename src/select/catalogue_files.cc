#include "select/catalogue_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace portolan {
namespace {

struct File {
  std::string path, isa, dtype;
};

// "cublaslt_sm_90_fp8_e4m3" -> isa sm_90, dtype fp8_e4m3.
File Parse(const std::string& path, const std::string& stem) {
  File file{path, "", ""};
  size_t rest = std::string::npos;
  for (const char* prefix : {"_sm_", "_gfx", "_cpu"}) {
    const size_t at = stem.find(prefix);
    if (at == std::string::npos) continue;
    rest = stem.find('_', at + std::string(prefix).size());
    file.isa = stem.substr(at + 1, rest == std::string::npos ? rest : rest - at - 1);
    break;
  }
  if (rest != std::string::npos) file.dtype = stem.substr(rest + 1);
  return file;
}

bool HoldsType(const File& file, DType compute) {
  if (file.dtype.empty()) return true;
  const auto dtype = ParseDType(file.dtype);
  if (!dtype) return false;
  if (*dtype == compute) return true;
  const bool eight = compute == DType::kFp8E4m3 || compute == DType::kFp8E5m2;
  return (*dtype == DType::kBf16 && compute == DType::kFp16) || (*dtype == DType::kFp8E4m3 && eight);
}

// Distance of two instruction sets of one vendor; -1 for different vendors.
int Distance(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& isa) { return isa.find_first_of("0123456789"); };
  if (split(a) == std::string::npos || split(b) == std::string::npos) return a == b ? 0 : -1;
  if (a.substr(0, split(a)) != b.substr(0, split(b))) return -1;
  // gfx names end in a hexadecimal stepping.
  return std::abs(static_cast<int>(std::strtol(a.c_str() + split(a), nullptr, 16) -
                                   std::strtol(b.c_str() + split(b), nullptr, 16)));
}

}  // namespace

Result<std::vector<std::string>> FindKernelCatalogues(const std::vector<std::string>& data_dirs,
                                                      const Accelerator& accelerator, DType compute) {
  std::vector<File> files;
  for (const std::string& dir : data_dirs) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir + "/kernels", error)) {
      if (entry.path().extension() == ".csv")
        files.push_back(Parse(entry.path().string(), entry.path().stem().string()));
    }
  }
  std::map<int, std::vector<std::string>> by_distance;
  const std::string isa = accelerator.isa.empty() || accelerator.vendor == "cpu" ? accelerator.vendor : accelerator.isa;
  for (const File& file : files) {
    const int distance = Distance(file.isa, isa);
    if (distance >= 0 && HoldsType(file, compute)) by_distance[distance].push_back(file.path);
  }
  if (by_distance.empty()) {
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no kernel catalogue for {} ({}) and {}; give one with --catalogue", accelerator.id,
                                 isa, DTypeName(compute)));
  }
  std::vector<std::string> nearest = by_distance.begin()->second;
  std::sort(nearest.begin(), nearest.end());
  return nearest;
}

}  // namespace portolan
