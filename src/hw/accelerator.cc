#include "hw/accelerator.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "base/yaml.h"
#include "hw/host.h"
#include "hw/read_head.h"

namespace portolan {
namespace {

enum class FieldKind {
  kScalar,
  kWhole,    // a whole number
  kByDType,  // a map from number format to fact
};
enum class Need { kRequired, kOptional };
// With read_from_host the file's value is for one core of the CPU.
enum class PerCore { kNo, kTimesCores };

struct Field {
  const char* key;
  FieldKind kind;
  Need need;
  PerCore per_core;
  Range range;  // far outside anything built or announced: catches a wrong unit (GB for bytes, GHz for Hz)
};

constexpr Range kFlopsRange{1e8, 1e18};
constexpr Range kRateRange{1e8, 1e15};
constexpr std::array kFields = {
    Field{"compute_units", FieldKind::kWhole, Need::kRequired, PerCore::kTimesCores, {1, 100'000}},
    Field{"dies", FieldKind::kWhole, Need::kOptional, PerCore::kNo, {1, 64}},
    Field{"wave_size", FieldKind::kWhole, Need::kOptional, PerCore::kNo, {1, 1024}},
    Field{"clock_boost_hz", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e8, 2e10}},
    Field{"clock_tensor_hz", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e8, 2e10}},
    Field{"matrix_flops_per_clock_per_unit", FieldKind::kByDType, Need::kOptional, PerCore::kNo, {1, 1e7}},
    Field{"peak_matrix_flops_per_s", FieldKind::kByDType, Need::kRequired, PerCore::kTimesCores, kFlopsRange},
    Field{"sustained_matrix_flops_per_s", FieldKind::kByDType, Need::kOptional, PerCore::kTimesCores, kFlopsRange},
    Field{"peak_vector_fp32_flops_per_s", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, kFlopsRange},
    Field{"transcendental_per_clock_per_unit", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {0.01, 1e4}},
    Field{"shared_memory_bytes_per_unit", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1024, 1e9}},
    Field{"register_bytes_per_unit", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {64, 1e8}},
    Field{"l2_bytes_per_die", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, {1e4, 1e11}},
    Field{"l2_bytes_per_s", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, kRateRange},
    Field{"mall_bytes", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e4, 1e12}},
    Field{"mall_bytes_per_s", FieldKind::kScalar, Need::kOptional, PerCore::kNo, kRateRange},
    Field{"hbm_bytes", FieldKind::kScalar, Need::kRequired, PerCore::kTimesCores, {1e8, 1e14}},
    Field{"hbm_peak_bytes_per_s", FieldKind::kScalar, Need::kRequired, PerCore::kTimesCores, kRateRange},
    Field{"hbm_sustained_bytes_per_s", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, kRateRange},
    Field{"memory_line_bytes", FieldKind::kWhole, Need::kOptional, PerCore::kNo, {1, 65536}},
    Field{"kernel_fixed_s", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e-9, 0.1}},
    Field{"host_launch_s", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e-9, 0.1}},
    Field{"host_link_bytes_per_s", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, kRateRange},
    Field{"host_memory_bytes_per_device", FieldKind::kScalar, Need::kOptional, PerCore::kNo, {1e8, 1e14}},
    Field{"power_w", FieldKind::kScalar, Need::kOptional, PerCore::kTimesCores, {0.1, 1e5}},
};

// A sustained rate may read this much above the stated peak: a data sheet rounds, a clock boosts.
constexpr double kAbovePeak = 1.05;

Status ReadByDType(const YamlValue& value, const Field& field, std::map<std::string, Fact>* facts) {
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  const auto entries = map.Entries();
  if (entries.empty()) {
    return value.MakeError(ErrorCode::kMissingField, "needs at least one of " + Join(DTypeNames(), ", "));
  }
  for (const auto& [name, entry] : entries) {
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype) {
      return entry.MakeError(ErrorCode::kUnknownField, "unknown number format; accepted: " + Join(DTypeNames(), ", ") +
                                                           DidYouMean(name, DTypeNames()));
    }
    PORTOLAN_ASSIGN_OR_RETURN(const Fact fact, ReadFact(entry, field.range));
    (*facts)[std::string(field.key) + "." + DTypeName(*dtype)] = fact;
  }
  return {};
}

Status ReadField(const YamlValue& value, const Field& field, std::map<std::string, Fact>* facts) {
  if (field.kind == FieldKind::kByDType) return ReadByDType(value, field, facts);
  PORTOLAN_ASSIGN_OR_RETURN(const Fact fact, ReadFact(value, field.range));
  if (field.kind == FieldKind::kWhole && fact.value != std::floor(fact.value)) {
    return value.MakeError(ErrorCode::kInvalidValue, fmt::format("value must be a whole number, got {}", fact.value));
  }
  (*facts)[field.key] = fact;
  return {};
}

// Refuses `key` above the peak that it is a share of, and a sustained rate without a peak.
Status CheckAgainstPeak(YamlMap* map, const Accelerator& accelerator, const std::string& key,
                        const std::string& peak_key) {
  const auto sustained = accelerator.facts.find(key);
  if (sustained == accelerator.facts.end()) return {};
  const std::string top_key = key.substr(0, key.find('.'));
  Error error = map->Find(top_key)->MakeError(ErrorCode::kInvalidValue, "").value();
  error.field = key;
  const auto peak = accelerator.facts.find(peak_key);
  if (peak == accelerator.facts.end()) {
    error.message = "needs " + peak_key + " as well";
    return tl::make_unexpected(std::move(error));
  }
  if (sustained->second.value <= kAbovePeak * peak->second.value) return {};
  error.message = fmt::format("{} is above the peak, {} = {}; accepted: at most the peak", sustained->second.value,
                              peak_key, peak->second.value);
  return tl::make_unexpected(std::move(error));
}

Status CheckConsistency(YamlMap* map, const Accelerator& accelerator) {
  for (const std::string& dtype : DTypeNames()) {
    PORTOLAN_RETURN_IF_ERROR(CheckAgainstPeak(map, accelerator, "sustained_matrix_flops_per_s." + dtype,
                                              "peak_matrix_flops_per_s." + dtype));
  }
  return CheckAgainstPeak(map, accelerator, "hbm_sustained_bytes_per_s", "hbm_peak_bytes_per_s");
}

// Turns the values of one core into those of the machine.
void ScaleToHost(const HostMachine& host, std::map<std::string, Fact>* facts) {
  const double cores = std::max(host.cores, 1);
  for (const Field& field : kFields) {
    if (field.per_core == PerCore::kNo) continue;
    for (auto& [key, fact] : *facts) {
      if (key != field.key && !key.starts_with(std::string(field.key) + ".")) continue;
      fact.value *= cores;
      fact.source += fmt::format(" (one core) x {} cores of this machine", cores);
    }
  }
  const auto read = [&](const char* key, double value, const char* source) {
    if (value <= 0) return;
    Fact& fact = (*facts)[key];
    fact.value = value;
    fact.kind = FactKind::kMeasured;
    fact.source = source;
  };
  read("compute_units", host.cores, "/proc/cpuinfo of this machine");
  read("hbm_bytes", host.memory.value, "/proc/meminfo of this machine");
  read("shared_memory_bytes_per_unit", host.private_l2.value, "/sys/devices/system/cpu of this machine (level 2)");
  const auto dies = facts->find("dies");
  const double die_count = dies == facts->end() ? 1 : dies->second.value;
  read("l2_bytes_per_die", host.last_level_cache.value / die_count,
       "/sys/devices/system/cpu of this machine (level 3)");
}

}  // namespace

Result<Accelerator> ReadAccelerator(const std::string& path) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue root, YamlValue::Load(path));
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, root.Map());
  Accelerator accelerator;
  accelerator.file = path;
  accelerator.id = ReadHardwareId(&map);
  accelerator.name = map.String("name");
  accelerator.vendor = LowerCase(map.String("vendor"));
  accelerator.family = map.String("family", "");
  accelerator.isa = map.String("isa", "");
  accelerator.scale_up_fabric = map.String("scale_up_fabric", "");
  accelerator.scale_out_fabric = map.String("scale_out_fabric", "");
  const bool read_from_host = map.Bool("read_from_host", false);
  for (const Field& field : kFields) {
    if (field.need == Need::kRequired && !map.Has(field.key)) {
      Error error = root.MakeError(ErrorCode::kMissingField,
                                   "is required but missing; required: name, vendor, compute_units, hbm_bytes, "
                                   "hbm_peak_bytes_per_s and one number format of peak_matrix_flops_per_s")
                        .value();
      error.field = field.key;
      map.Fail(std::move(error));
    }
    map.Visit(field.key, [&](const YamlValue& value) { return ReadField(value, field, &accelerator.facts); });
  }
  if (map.ok()) {
    if (Status status = CheckConsistency(&map, accelerator); !status) map.Fail(std::move(status.error()));
  }
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  if (read_from_host) ScaleToHost(ReadHostMachine(""), &accelerator.facts);
  SetMembersFromFacts(&accelerator);
  return accelerator;
}

void SetMembersFromFacts(Accelerator* a) {
  const auto get = [&](const std::string& key, double fallback = 0.0) {
    const auto found = a->facts.find(key);
    return found == a->facts.end() ? fallback : found->second.value;
  };
  a->compute_units = static_cast<int>(get("compute_units"));
  a->dies = static_cast<int>(get("dies", 1));
  a->wave_size = static_cast<int>(get("wave_size"));
  a->clock_boost = Hertz(get("clock_boost_hz"));
  for (const std::string& name : DTypeNames()) {
    const DType dtype = *ParseDType(name);
    a->peak_matrix[dtype] = FlopsPerSecond(get("peak_matrix_flops_per_s." + name));
    a->sustained_matrix[dtype] = FlopsPerSecond(get("sustained_matrix_flops_per_s." + name));
  }
  a->peak_vector_fp32 = FlopsPerSecond(get("peak_vector_fp32_flops_per_s"));
  a->transcendental_per_s = get("transcendental_per_clock_per_unit") * a->compute_units * a->clock_boost.value;
  a->shared_memory_per_unit = Bytes(get("shared_memory_bytes_per_unit"));
  a->registers_per_unit = Bytes(get("register_bytes_per_unit"));
  a->l2 = Bytes(get("l2_bytes_per_die") * a->dies);
  a->l2_rate = BytesPerSecond(get("l2_bytes_per_s"));
  a->mall = Bytes(get("mall_bytes"));
  a->mall_rate = BytesPerSecond(get("mall_bytes_per_s"));
  a->hbm = Bytes(get("hbm_bytes"));
  a->hbm_peak = BytesPerSecond(get("hbm_peak_bytes_per_s"));
  a->hbm_sustained = BytesPerSecond(get("hbm_sustained_bytes_per_s"));
  a->memory_line = Bytes(get("memory_line_bytes"));
  a->kernel_fixed = Seconds(get("kernel_fixed_s"));
  a->host_launch = Seconds(get("host_launch_s"));
  a->host_link = BytesPerSecond(get("host_link_bytes_per_s"));
  a->power_w = get("power_w");
}

std::vector<PeakCheck> CheckPeaks(const Accelerator& accelerator) {
  std::vector<PeakCheck> checks;
  const auto& facts = accelerator.facts;
  const auto clock = facts.find("clock_tensor_hz");
  if (clock == facts.end()) return checks;
  for (const std::string& name : DTypeNames()) {
    const auto per_clock = facts.find("matrix_flops_per_clock_per_unit." + name);
    const auto peak = facts.find("peak_matrix_flops_per_s." + name);
    if (per_clock == facts.end() || peak == facts.end()) continue;
    const double product = accelerator.compute_units * per_clock->second.value * clock->second.value;
    checks.push_back({*ParseDType(name), FlopsPerSecond(product), FlopsPerSecond(peak->second.value)});
  }
  return checks;
}

}  // namespace portolan
