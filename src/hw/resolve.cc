#include "hw/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace portolan {
namespace {

using Accelerators = std::map<std::string, Accelerator>;

enum class Scope { kFamily, kFamilyThenVendor, kNearest };

struct Ratio {
  double value = 0;
  std::string from;  // "median of h100, h200 (same family)"
};

bool Related(const Accelerator& a, const Accelerator& b) {
  return a.id != b.id && (a.vendor == "cpu") == (b.vendor == "cpu");
}

// Median ratio over the relatives for which `ratio_of` has a value.
template <typename RatioOf>
std::optional<Ratio> MedianOfRelatives(const Accelerator& device, const Accelerators& all, Scope scope,
                                       const RatioOf& ratio_of) {
  struct Circle {
    const char* name;
    bool (*holds)(const Accelerator&, const Accelerator&);
  };
  constexpr std::array kCircles = {
      Circle{"same family",
             [](const Accelerator& a, const Accelerator& b) {
               return !a.family.empty() && a.family == b.family && a.vendor == b.vendor;
             }},
      Circle{"same vendor", [](const Accelerator& a, const Accelerator& b) { return a.vendor == b.vendor; }},
      Circle{"all accelerators", [](const Accelerator&, const Accelerator&) { return true; }},
  };
  const size_t last = scope == Scope::kFamily ? 1 : scope == Scope::kFamilyThenVendor ? 2 : kCircles.size();
  for (size_t i = 0; i < last; ++i) {
    std::vector<double> ratios;
    std::vector<std::string> names;
    for (const auto& [id, relative] : all) {
      if (!Related(device, relative) || !kCircles[i].holds(device, relative)) continue;
      const std::optional<double> ratio = ratio_of(relative);
      if (!ratio) continue;
      ratios.push_back(*ratio);
      names.push_back(id);
    }
    if (ratios.empty()) continue;
    std::sort(ratios.begin(), ratios.end());
    const size_t middle = ratios.size() / 2;
    const double median = ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
    return Ratio{median,
                 fmt::format("{}{} ({})", names.size() > 1 ? "median of " : "", Join(names, ", "), kCircles[i].name)};
  }
  return std::nullopt;
}

std::optional<double> Stated(const Accelerator& accelerator, const std::string& key) {
  const auto found = accelerator.facts.find(key);
  if (found == accelerator.facts.end()) return std::nullopt;
  return found->second.value;
}

// What a value scales with, how it is stored, and what holds where no relative states it.
struct Rule {
  const char* key;
  const char* scales_with;
  double (*scale)(const Accelerator&);
  void (*set)(Accelerator*, double);
  Scope scope;
  double fallback_ratio;  // round figures of 2026's accelerators; only used when nothing at all is loaded beside
};

double One(const Accelerator&) { return 1; }
double Clocks(const Accelerator& a) { return a.compute_units * a.clock_boost.value; }
double Peak(const Accelerator& a) { return a.hbm_peak.value; }

constexpr std::array kRules = {
    Rule{"wave_size", "", One, [](Accelerator* a, double v) { a->wave_size = static_cast<int>(v); }, Scope::kNearest,
         32},
    Rule{"clock_boost_hz", "", One, [](Accelerator* a, double v) { a->clock_boost = Hertz(v); }, Scope::kNearest, 2e9},
    Rule{"peak_vector_fp32_flops_per_s", "compute_units x clock_boost_hz", Clocks,
         [](Accelerator* a, double v) { a->peak_vector_fp32 = FlopsPerSecond(v); }, Scope::kNearest, 256},
    Rule{"transcendental_per_clock_per_unit", "", One,
         [](Accelerator* a, double v) { a->transcendental_per_s = v * Clocks(*a); }, Scope::kNearest, 16},
    Rule{"shared_memory_bytes_per_unit", "", One,
         [](Accelerator* a, double v) { a->shared_memory_per_unit = Bytes(v); }, Scope::kNearest, 65536},
    Rule{"register_bytes_per_unit", "", One, [](Accelerator* a, double v) { a->registers_per_unit = Bytes(v); },
         Scope::kNearest, 262144},
    Rule{"l2_bytes_per_die", "", One, [](Accelerator* a, double v) { a->l2 = Bytes(v * a->dies); }, Scope::kNearest,
         4194304},
    Rule{"l2_bytes_per_s", "compute_units x clock_boost_hz", Clocks,
         [](Accelerator* a, double v) { a->l2_rate = BytesPerSecond(v); }, Scope::kNearest, 32},
    Rule{"mall_bytes", "", One, [](Accelerator* a, double v) { a->mall = Bytes(v); }, Scope::kFamily, 0},
    Rule{"mall_bytes_per_s", "hbm_peak_bytes_per_s", Peak,
         [](Accelerator* a, double v) { a->mall_rate = BytesPerSecond(a->mall > Bytes(0) ? v : 0); }, Scope::kNearest,
         1.2},
    Rule{"hbm_sustained_bytes_per_s", "hbm_peak_bytes_per_s", Peak,
         [](Accelerator* a, double v) { a->hbm_sustained = BytesPerSecond(v); }, Scope::kNearest, 0.8},
    Rule{"memory_line_bytes", "", One, [](Accelerator* a, double v) { a->memory_line = Bytes(v); }, Scope::kNearest,
         128},
    Rule{"kernel_fixed_s", "", One, [](Accelerator* a, double v) { a->kernel_fixed = Seconds(v); }, Scope::kNearest,
         3e-6},
    Rule{"host_launch_s", "", One, [](Accelerator* a, double v) { a->host_launch = Seconds(v); }, Scope::kNearest,
         3e-6},
    Rule{"host_link_bytes_per_s", "", One, [](Accelerator* a, double v) { a->host_link = BytesPerSecond(v); },
         Scope::kNearest, 55e9},
};
constexpr double kFallbackSustainedMatrix = 0.7;

void ApplyRule(const Rule& rule, const Accelerators& all, Accelerator* device) {
  if (Stated(*device, rule.key)) return;
  std::optional<Ratio> ratio = MedianOfRelatives(*device, all, rule.scope, [&](const Accelerator& relative) {
    const std::optional<double> stated = Stated(relative, rule.key);
    const double scale = rule.scale(relative);
    return stated && scale > 0 ? std::optional(*stated / scale) : std::nullopt;
  });
  if (!ratio) {
    if (rule.fallback_ratio == 0) return;
    ratio = Ratio{rule.fallback_ratio, "no relative states it: default"};
  }
  const bool scaled = *rule.scales_with != '\0';
  rule.set(device, ratio->value * rule.scale(*device));
  if (std::string_view(rule.key) == "mall_bytes_per_s" && device->mall <= Bytes(0)) return;
  device->inherited[rule.key] =
      scaled ? fmt::format("{:.3g} x {}: {}", ratio->value, rule.scales_with, ratio->from) : ratio->from;
}

constexpr std::array kStandIns = {
    std::pair{DType::kBf16, DType::kFp16},
    std::pair{DType::kFp8E4m3, DType::kFp8E5m2},
};

// Copies a rate to the format that it stands in for.
void StandIn(FlopsByDType* rates, const char* key, DType to, DType from, Accelerator* device) {
  if ((*rates)[to].value > 0 || (*rates)[from].value <= 0) return;
  (*rates)[to] = (*rates)[from];
  device->inherited[std::string(key) + "." + DTypeName(to)] = std::string("as ") + DTypeName(from);
}

// Stated sustained share of peak, or nothing.
std::optional<double> SustainedShare(const Accelerator& accelerator, DType dtype) {
  const std::string name = DTypeName(dtype);
  const std::optional<double> sustained = Stated(accelerator, "sustained_matrix_flops_per_s." + name);
  const std::optional<double> peak = Stated(accelerator, "peak_matrix_flops_per_s." + name);
  return sustained && peak ? std::optional(*sustained / *peak) : std::nullopt;
}

void ResolveSustainedMatrix(const Accelerators& all, DType dtype, Accelerator* device) {
  const double peak = device->peak_matrix[dtype].value;
  if (peak <= 0 || device->sustained_matrix[dtype].value > 0) return;
  const auto share_of = [&](const Accelerator& relative) { return SustainedShare(relative, dtype); };
  std::optional<Ratio> ratio = MedianOfRelatives(*device, all, Scope::kFamilyThenVendor, share_of);
  const std::string name = DTypeName(dtype);
  const bool eight_bit = name.starts_with("fp8") || name.starts_with("mx");
  for (const DType own : {DType::kFp8E4m3, DType::kBf16}) {
    if (ratio || own == dtype || (own == DType::kFp8E4m3 && !eight_bit)) continue;
    const double own_peak = device->peak_matrix[own].value;
    const double own_sustained = device->sustained_matrix[own].value;
    if (own_peak <= 0 || own_sustained <= 0) continue;
    ratio = Ratio{own_sustained / own_peak, std::string("the device's own share of ") + DTypeName(own)};
  }
  if (!ratio) ratio = MedianOfRelatives(*device, all, Scope::kNearest, share_of);
  if (!ratio) ratio = Ratio{kFallbackSustainedMatrix, "no relative states it: default"};
  device->sustained_matrix[dtype] = FlopsPerSecond(std::min(ratio->value, 1.0) * peak);
  device->inherited["sustained_matrix_flops_per_s." + name] =
      fmt::format("{:.3g} x peak: {}", ratio->value, ratio->from);
}

void ResolveMatrixRates(const Accelerators& all, Accelerator* device) {
  for (const auto& [a, b] : kStandIns) {
    StandIn(&device->sustained_matrix, "sustained_matrix_flops_per_s", a, b, device);
    StandIn(&device->sustained_matrix, "sustained_matrix_flops_per_s", b, a, device);
    StandIn(&device->peak_matrix, "peak_matrix_flops_per_s", a, b, device);
    StandIn(&device->peak_matrix, "peak_matrix_flops_per_s", b, a, device);
  }
  for (const auto& [a, b] : kStandIns) {
    ResolveSustainedMatrix(all, a, device);
    StandIn(&device->sustained_matrix, "sustained_matrix_flops_per_s", b, a, device);
  }
  for (const std::string& name : DTypeNames()) ResolveSustainedMatrix(all, *ParseDType(name), device);
}

void ResolveFabric(const Accelerators& all, const char* key, std::string Accelerator::*member, const char* fallback,
                   Accelerator* device) {
  if (!(device->*member).empty()) return;
  for (const auto& [id, relative] : all) {
    const bool inherited = relative.inherited.count(key) != 0;
    if (inherited || !Related(*device, relative) || (relative.*member).empty()) continue;
    if (device->family.empty() || relative.family != device->family || relative.vendor != device->vendor) continue;
    device->*member = relative.*member;
    device->inherited[key] = id + " (same family)";
    return;
  }
  device->*member = fallback;
  device->inherited[key] = "assumed from vendor and memory bandwidth";
}

// NVIDIA's NVSwitch generations came with its HBM generations; a card with less bandwidth than an A100 sits on PCIe.
const char* DefaultScaleUp(const Accelerator& device) {
  const double hbm = device.hbm_peak.value;
  if (device.vendor == "nvidia")
    return hbm < 1.5e12 ? "pcie_gen4" : hbm < 2.5e12 ? "nvlink3" : hbm < 6e12 ? "nvlink4" : "nvlink5";
  if (device.vendor == "amd") return hbm < 7e12 ? "xgmi_mi300" : "xgmi_mi350";
  if (device.vendor == "cpu") return "cpu_node";
  return "pcie_gen5";
}

}  // namespace

void ResolveAccelerators(const std::vector<std::string>& ids, Accelerators* accelerators) {
  for (const std::string& id : ids) ResolveMatrixRates(*accelerators, &accelerators->at(id));
  for (const Rule& rule : kRules) {
    for (const std::string& id : ids) ApplyRule(rule, *accelerators, &accelerators->at(id));
  }
  for (const std::string& id : ids) {
    Accelerator* device = &accelerators->at(id);
    // Stated, but its product needs a clock that may have been inherited.
    if (const auto rate = Stated(*device, "transcendental_per_clock_per_unit")) {
      device->transcendental_per_s = *rate * Clocks(*device);
    }
    ResolveFabric(*accelerators, "scale_up_fabric", &Accelerator::scale_up_fabric, DefaultScaleUp(*device), device);
    ResolveFabric(*accelerators, "scale_out_fabric", &Accelerator::scale_out_fabric,
                  device->vendor == "cpu" ? "ethernet_25g" : "nic_400g", device);
  }
}

}  // namespace portolan
