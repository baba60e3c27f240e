#include "plan/gemm_times.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "select/catalogue_error.h"
#include "select/catalogue_files.h"
#include "select/constants.h"
#include "select/selector.h"

namespace portolan {
namespace {

// A search prices a few hundred different products; more than this many answers are forgotten together.
constexpr size_t kMostAnswers = 4096;

// What the selectors of two chips may differ by: one id may stand for several variants in one process.
std::string FingerprintOf(const Accelerator& a, DType compute, KernelFamily family) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", a.id, a.isa, DTypeName(compute),
                     KernelFamilyName(family), a.compute_units, a.dies, a.clock_boost.value,
                     a.sustained_matrix[compute].value, a.shared_memory_per_unit.value, a.registers_per_unit.value,
                     a.l2.value, a.l2_rate.value, a.mall_rate.value, a.hbm_sustained.value, a.kernel_fixed.value);
}

using ShapeKey = std::array<int64_t, 10>;
ShapeKey KeyOf(const GemmShape& s) {
  return {s.m,
          s.n,
          s.k,
          s.batch,
          s.groups,
          static_cast<int64_t>(s.layout),
          static_cast<int64_t>(s.a),
          static_cast<int64_t>(s.b),
          static_cast<int64_t>(s.d),
          static_cast<int64_t>(s.epilogue)};
}

// One family's kernels on one chip, and what they took before. `selector` empty: they could not be read.
struct PricedFamily {
  std::optional<Selector> selector;
  std::string fault;
  double kernel_error = 0.0;
  std::map<ShapeKey, std::optional<Estimate>> answers;
};

// The constants of one family and type in every directory, a later directory first.
Result<std::vector<FamilyConstants>> ConstantsOf(const std::vector<std::string>& data_dirs, KernelFamily family,
                                                 DType compute) {
  const std::string begin = fmt::format("gemm_{}_", KernelFamilyName(family));
  const std::string end = fmt::format("_{}", DTypeName(compute));
  std::vector<FamilyConstants> all;
  for (auto dir = data_dirs.rbegin(); dir != data_dirs.rend(); ++dir) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(*dir + "/constants", error)) {
      const std::string stem = entry.path().stem().string();
      if (entry.path().extension() != ".yaml" || stem.rfind(begin, 0) != 0 || !stem.ends_with(end)) continue;
      PORTOLAN_ASSIGN_OR_RETURN(FamilyConstants constants, ReadFamilyConstants(entry.path().string()));
      all.push_back(std::move(constants));
    }
  }
  if (all.empty()) {
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no constants/{}<chip>{}.yaml in the data directories", begin, end));
  }
  return all;
}

Result<Selector> MakeSelector(const std::vector<std::string>& data_dirs, const Accelerator& chip, KernelFamily family,
                              DType compute) {
  PORTOLAN_ASSIGN_OR_RETURN(const auto constants, ConstantsOf(data_dirs, family, compute));
  PORTOLAN_ASSIGN_OR_RETURN(const ShippedKernels shipped, LoadShippedKernels(data_dirs, chip, compute));
  return Selector::Create(chip, KernelsOf(shipped.catalogue, family), constants);
}

std::optional<Estimate> ExpectedEstimate(const PricedFamily& family, const GemmProblem& problem) {
  const RankedKernel best = family.selector->BestUncached(problem);
  if (best.index < 0) return std::nullopt;
  const double factor = family.selector->ExpectedTime(problem, best, family.kernel_error) / best.time;
  Estimate estimate = best.estimate;
  estimate.compute *= factor;
  estimate.memory *= factor;
  estimate.launch *= factor;
  estimate.total *= factor;
  return estimate;
}

std::mutex& CurrentMutex() {
  static std::mutex mutex;
  return mutex;
}
std::shared_ptr<const GemmTimes>& Current() {
  static std::shared_ptr<const GemmTimes> current;
  return current;
}

}  // namespace

struct GemmTimes::Impl {
  std::vector<std::string> data_dirs;
  std::vector<CatalogueError> errors;
  std::mutex mutex;
  std::map<std::string, PricedFamily> families;  // by FingerprintOf

  // With `mutex` held.
  PricedFamily& FamilyOf(const CatalogueError& record, const Accelerator& chip) {
    const auto [place, fresh] =
        families.try_emplace(FingerprintOf(chip, record.compute, record.family), PricedFamily{});
    PricedFamily& family = place->second;
    if (fresh) {
      family.kernel_error = record.kernel_error;
      Result<Selector> made = MakeSelector(data_dirs, chip, record.family, record.compute);
      if (made) {
        family.selector = std::move(*made);
      } else {
        family.fault = FormatError(made.error());
      }
    }
    return family;
  }
};

GemmTimes::GemmTimes(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GemmTimes::~GemmTimes() = default;

Result<std::shared_ptr<const GemmTimes>> GemmTimes::Create(std::vector<std::string> data_dirs) {
  auto impl = std::make_unique<Impl>();
  PORTOLAN_ASSIGN_OR_RETURN(impl->errors, LoadCatalogueErrors(data_dirs));
  impl->data_dirs = std::move(data_dirs);
  return std::shared_ptr<const GemmTimes>(new GemmTimes(std::move(impl)));
}

std::optional<Estimate> GemmTimes::SelectEstimate(const GemmShape& shape, const Accelerator& chip) const {
  if (impl_->errors.empty() || shape.groups > 1) return std::nullopt;
  const GemmProblem problem = ProblemOf(shape);
  const CatalogueError* record = FindQualified(impl_->errors, chip.isa, problem);
  if (record == nullptr || !IsPriceable(problem)) return std::nullopt;
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  PricedFamily& family = impl_->FamilyOf(*record, chip);
  if (!family.selector) return std::nullopt;
  const ShapeKey key = KeyOf(shape);
  if (const auto known = family.answers.find(key); known != family.answers.end()) return known->second;
  if (family.answers.size() >= kMostAnswers) family.answers.clear();
  return family.answers[key] = ExpectedEstimate(family, problem);
}

std::string GemmTimes::Note(DType compute, const Accelerator& chip) const {
  constexpr std::pair<GemmLayout, const char*> kLayouts[] = {{GemmLayout::kTN, "forward (TN)"},
                                                             {GemmLayout::kNN, "input-gradient (NN)"},
                                                             {GemmLayout::kNT, "weight-gradient (NT)"}};
  std::vector<std::string> priced;
  const CatalogueError* record = nullptr;
  for (const auto& [layout, name] : kLayouts) {
    GemmProblem problem;  // of rows that start on 16 bytes in any type
    problem.m = problem.n = problem.k = 256;
    problem.layout = layout;
    problem.a = problem.b = problem.compute = compute;
    const CatalogueError* found = FindQualified(impl_->errors, chip.isa, problem);
    if (found == nullptr) continue;
    record = found;
    priced.push_back(name);
  }
  if (record == nullptr) return "";
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  const PricedFamily& family = impl_->FamilyOf(*record, chip);
  if (!family.selector) {
    return fmt::format("matrix products are priced by the kernel-blind model: {}", family.fault);
  }
  return fmt::format(
      "{} {} products with aligned rows are priced as the {} kernel that select would choose (median error {:.1f} %, "
      "{:.1f} % without kernels); the others by the kernel-blind model",
      DTypeName(compute), Join(priced, " and "), KernelFamilyName(record->family), 100 * record->select.median,
      100 * record->kernel_blind.median);
}

void SetGemmTimes(std::shared_ptr<const GemmTimes> times) {
  const std::lock_guard<std::mutex> lock(CurrentMutex());
  Current() = std::move(times);
}

std::shared_ptr<const GemmTimes> CurrentGemmTimes() {
  const std::lock_guard<std::mutex> lock(CurrentMutex());
  return Current();
}

}  // namespace portolan
