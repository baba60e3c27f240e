#include "portolan_select.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>

#include "hw/catalogue.h"
#include "select/catalogue_csv.h"
#include "select/catalogue_files.h"
#include "select/constants.h"
#include "select/selector.h"

struct portolan_selector {
  portolan::Selector selector;
  portolan::DType dtype;
};

namespace portolan {
namespace {

Result<portolan_selector*> Create(const std::string& data_dir, const std::string& accelerator_id,
                                  const char* catalogue_csv, const std::string& dtype_name) {
  const auto dtype = ParseTableDType(dtype_name);
  if (!dtype) return MakeError(ErrorCode::kInvalidValue, "unknown number format " + dtype_name);
  PORTOLAN_ASSIGN_OR_RETURN(const Catalogue hardware, Catalogue::Load({data_dir}));
  PORTOLAN_ASSIGN_OR_RETURN(const Accelerator* accelerator, hardware.FindAccelerator(accelerator_id));
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, LoadGemmConstants({data_dir}));
  KernelCatalogue kernels;
  if (catalogue_csv != nullptr) {
    PORTOLAN_ASSIGN_OR_RETURN(KernelList list, ReadKernels(catalogue_csv, *dtype));
    kernels = std::move(list.catalogue);
    for (GemmKernel& kernel : kernels.kernels) ForgetProblem(&kernel);  // the list's order belongs to other problems
  } else {
    PORTOLAN_ASSIGN_OR_RETURN(ShippedKernels shipped, LoadShippedKernels({data_dir}, *accelerator, *dtype));
    kernels = std::move(shipped.catalogue);
  }
  PORTOLAN_ASSIGN_OR_RETURN(Selector selector, Selector::Create(*accelerator, std::move(kernels), constants));
  return new portolan_selector{std::move(selector), *dtype};
}

bool Convert(const portolan_gemm_problem& in, DType dtype, GemmProblem* out) {
  if (in.m < 1 || in.n < 1 || in.k < 1 || in.batch < 0) return false;
  if (in.lda < 0 || in.ldb < 0 || in.ldc < 0 || in.ldd < 0) return false;
  out->m = in.m;
  out->n = in.n;
  out->k = in.k;
  out->batch = in.batch > 0 ? in.batch : 1;
  out->lda = in.lda;
  out->ldb = in.ldb;
  out->ldc = in.ldc;
  out->ldd = in.ldd;
  const char* layout = in.layout != nullptr ? in.layout : "TN";
  if (std::strcmp(layout, "TN") == 0) {
    out->layout = GemmLayout::kTN;
  } else if (std::strcmp(layout, "NN") == 0) {
    out->layout = GemmLayout::kNN;
  } else if (std::strcmp(layout, "NT") == 0) {
    out->layout = GemmLayout::kNT;
  } else {
    return false;
  }
  if (in.dtype != nullptr) {
    const auto named = ParseTableDType(in.dtype);
    if (!named) return false;
    dtype = *named;
  }
  out->compute = dtype;
  out->a = out->b = dtype == DType::kTf32 ? DType::kFp32 : dtype;
  out->c = out->d = SizeOf(dtype).value <= 1.2 ? DType::kBf16 : out->a;
  out->usable_units = std::max(0, in.usable_units);
  out->pointer_alignment_bytes = in.pointer_alignment_bytes > 0 ? in.pointer_alignment_bytes : 16;
  out->inputs = in.warm != 0 ? InputResidency::kJustProduced : InputResidency::kCold;
  return true;
}

portolan_kernel_choice Convert(const RankedKernel& kernel) {
  return {kernel.index,
          kernel.time.value,
          kernel.estimate.compute.value,
          kernel.estimate.memory.value,
          kernel.estimate.launch.value,
          kernel.confidence};
}

void Write(const std::string& message, char* error, size_t error_size) {
  if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", message.c_str());
}

}  // namespace
}  // namespace portolan

extern "C" {

portolan_selector* portolan_selector_create(const char* data_dir, const char* accelerator, const char* catalogue_csv,
                                            const char* dtype, char* error, size_t error_size) {
  try {
    if (data_dir == nullptr || accelerator == nullptr || dtype == nullptr) {
      portolan::Write("data_dir, accelerator and dtype are required", error, error_size);
      return nullptr;
    }
    const auto created = portolan::Create(data_dir, accelerator, catalogue_csv, dtype);
    if (created) return *created;
    portolan::Write(portolan::FormatError(created.error()), error, error_size);
  } catch (const std::exception& failure) {  // out of memory: nothing may leave through a C frame
    portolan::Write(failure.what(), error, error_size);
  }
  return nullptr;
}

void portolan_selector_destroy(portolan_selector* selector) { delete selector; }

int portolan_selector_best(const portolan_selector* selector, const portolan_gemm_problem* problem,
                           portolan_kernel_choice* choice) {
  portolan::GemmProblem converted;
  if (selector == nullptr || problem == nullptr || choice == nullptr ||
      !portolan::Convert(*problem, selector->dtype, &converted)) {
    return PORTOLAN_INVALID;
  }
  *choice = portolan::Convert(selector->selector.Best(converted));
  return PORTOLAN_OK;
}

int portolan_selector_rank(const portolan_selector* selector, const portolan_gemm_problem* problem,
                           portolan_kernel_choice* choices, size_t room, size_t* found) {
  constexpr size_t kMostRanked = 64;
  portolan::GemmProblem converted;
  if (selector == nullptr || problem == nullptr || choices == nullptr || found == nullptr || room == 0 ||
      !portolan::Convert(*problem, selector->dtype, &converted)) {
    return PORTOLAN_INVALID;
  }
  std::array<portolan::RankedKernel, kMostRanked> ranked;
  *found = selector->selector.Rank(converted, std::span(ranked.data(), std::min(room, kMostRanked)));
  for (size_t i = 0; i < *found; ++i) choices[i] = portolan::Convert(ranked[i]);
  return PORTOLAN_OK;
}

int32_t portolan_selector_kernel_count(const portolan_selector* selector) {
  return selector == nullptr ? 0 : static_cast<int32_t>(selector->selector.catalogue().ids.size());
}

const char* portolan_selector_kernel_id(const portolan_selector* selector, int32_t index) {
  if (selector == nullptr || index < 0 || index >= portolan_selector_kernel_count(selector)) return nullptr;
  return selector->selector.catalogue().ids[static_cast<size_t>(index)].c_str();
}

}  // extern "C"
