#include "select/catalogue_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "cost/gemm_tiles.h"
#include "select/catalogue_csv.h"

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

namespace {

constexpr double kScaleBytes = 1.0 / 32.0;  // of an element in the mx formats; not part of a tile's step

constexpr int kLeastStep = 16;  // elements of K: the shortest matrix instructions that kernels of a tile language use

// bf16 kernels of a tile language, written for `compute`: the same tiles and as many bytes of K a step.
Result<KernelCatalogue> StandIns(const std::vector<std::string>& files, DType compute) {
  KernelCatalogue kernels;
  const bool scaled = compute == DType::kMxFp8 || compute == DType::kMxFp6 || compute == DType::kMxFp4;
  const double bytes = SizeOf(compute).value - (scaled ? kScaleBytes : 0.0);
  for (const std::string& file : files) {
    PORTOLAN_ASSIGN_OR_RETURN(const KernelList list, ReadKernels(file, DType::kBf16));
    for (size_t i = 0; i < list.catalogue.kernels.size(); ++i) {
      GemmKernel kernel = list.catalogue.kernels[i];
      if (kernel.family != KernelFamily::kTriton && kernel.family != KernelFamily::kTensile) break;
      const double depth = kernel.tile_k * SizeOf(DType::kBf16).value / bytes + 1e-6;
      kernel.compute = compute;
      kernel.tile_k =
          static_cast<int16_t>(std::max<int>(kLeastStep, static_cast<int>(depth) / kLeastStep * kLeastStep));
      kernels.kernels.push_back(kernel);
      kernels.ids.push_back(list.catalogue.ids[i]);
    }
  }
  return kernels;
}

}  // namespace

Result<ShippedKernels> LoadShippedKernels(const std::vector<std::string>& data_dirs, const Accelerator& accelerator,
                                          DType compute) {
  ShippedKernels shipped;
  const auto files = FindKernelCatalogues(data_dirs, accelerator, compute);
  if (files) {
    const std::string isa = Parse(files->front(), std::filesystem::path(files->front()).stem().string()).isa;
    if (accelerator.vendor != "cpu" && isa != accelerator.isa) {
      shipped.notes.push_back(
          fmt::format("no {} catalogue for {}: the kernels of {} stand in", DTypeName(compute), accelerator.isa, isa));
    }
    for (const std::string& file : *files) {
      PORTOLAN_ASSIGN_OR_RETURN(KernelList list, ReadKernels(file, compute));
      for (size_t i = 0; i < list.catalogue.kernels.size(); ++i) {
        shipped.catalogue.kernels.push_back(list.catalogue.kernels[i]);
        shipped.catalogue.ids.push_back(list.catalogue.ids[i]);
      }
    }
  } else {
    const auto tiles = FindKernelCatalogues(data_dirs, accelerator, DType::kBf16);
    if (!tiles) return tl::make_unexpected(files.error());
    PORTOLAN_ASSIGN_OR_RETURN(shipped.catalogue, StandIns(*tiles, compute));
    if (shipped.catalogue.kernels.empty()) return tl::make_unexpected(files.error());
    shipped.notes.push_back(fmt::format("no {} catalogue for {}: its bf16 tiles stand in, uncalibrated for this type",
                                        DTypeName(compute), accelerator.isa));
  }
  const auto holds = [&](KernelFamily family) {
    return std::any_of(shipped.catalogue.kernels.begin(), shipped.catalogue.kernels.end(),
                       [&](const GemmKernel& k) { return k.family == family; });
  };
  if (holds(KernelFamily::kTensile) && holds(KernelFamily::kAiter)) {
    shipped.notes.push_back(
        "tensile and aiter kernels were timed by different programs: trust the order inside each, not between them");
  }
  for (size_t i = 0; i < shipped.catalogue.kernels.size(); ++i) {
    GemmKernel& kernel = shipped.catalogue.kernels[i];
    ForgetProblem(&kernel);  // the list's order belongs to other problems
    shipped.catalogue.ids[i] = fmt::format("{}:{}", KernelFamilyName(kernel.family), shipped.catalogue.ids[i]);
  }
  if (accelerator.sustained_matrix[compute].value <= 0.0) {
    shipped.notes.push_back(
        fmt::format("{} has no {} matrix instruction: priced at {:.4g} TFLOP/s, what stands in for it", accelerator.id,
                    DTypeName(compute), GemmRate(compute, accelerator).value / 1e12));
  }
  return shipped;
}

KernelCatalogue KernelsOf(const KernelCatalogue& catalogue, KernelFamily family) {
  KernelCatalogue own;
  for (size_t i = 0; i < catalogue.kernels.size(); ++i) {
    if (catalogue.kernels[i].family != family) continue;
    own.kernels.push_back(catalogue.kernels[i]);
    own.ids.push_back(catalogue.ids[i]);
  }
  return own;
}

}  // namespace portolan
