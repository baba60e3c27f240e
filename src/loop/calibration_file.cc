#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "base/check.h"
#include "base/yaml.h"
#include "hw/host.h"
#include "loop/calibration.h"
#include "loop/read_grid.h"

namespace portolan {
namespace {

constexpr const char* kMeasured = "portolan calibrate";

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Numbers(const std::vector<double>& numbers) {
  std::string list = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    list += fmt::format("{}{:.4g}", i > 0 ? ", " : "", numbers[i]);
    if (i % 12 == 11) list += "\n    ";
  }
  return list + "]";
}

Status WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const std::string part = fmt::format("{}.{}.part", path.string(), getpid());
  std::ofstream out(part, std::ios::binary);
  out << text;
  out.close();
  if (!out) return MakeError(ErrorCode::kIo, fmt::format("{}: cannot be written: {}", part, std::strerror(errno)));
  std::filesystem::rename(part, path, failed);
  if (failed)
    return MakeError(ErrorCode::kIo, fmt::format("{}: cannot be written: {}", path.string(), failed.message()));
  return {};
}

// The keys of data/accelerators/cpu.yaml, with what was measured in place of what is guessed there; rates are of the
// whole machine.
std::string AcceleratorText(const Calibration& c) {
  const HostMachine host = ReadHostMachine("");
  const auto fact = [&](const char* key, double value, const char* kind, const std::string& source) {
    return fmt::format("{}: {{value: {:.6g}, kind: {}, source: {}, date: {}}}\n", key, value, kind, Quoted(source),
                       c.date);
  };
  const auto measured = [&](const char* key, double value, const std::string& what) {
    return fact(key, value, "measured", fmt::format("{}: {}", kMeasured, what));
  };
  const double cores = c.threads;
  // Two numbers a format: fp32 by oneDNN's largest product; bf16 as measured; the others as fp32 or by its width.
  const double fp32 = c.gemm_flops_per_s, bf16 = std::max(c.gemm_bf16_flops_per_s, 1e8);
  std::string text = fmt::format(
      "# {}, measured by `portolan calibrate` on {}; written again by the next run. Rates are of the whole machine.\n"
      "id: cpu\nname: {}\nvendor: cpu\nfamily: cpu\nisa: host\nscale_up_fabric: cpu_node\nscale_out_fabric: "
      "ethernet_25g\n",
      c.machine, c.date, Quoted((host.model.empty() ? "CPU" : host.model) + fmt::format(", {} threads", c.threads)));
  text += measured("compute_units", cores, "threads of OpenMP");
  text += fact("dies", 1, "assumed", "one address space");
  text += fact("wave_size", 8, "assumed", "fp32 lanes of a 256-bit vector");
  const auto rates = [&](const char* key, double share) {
    const auto one = [&](const char* name, double value, const char* kind, const std::string& source) {
      return "  " + fact(name, value, kind, source);
    };
    const std::string best = fmt::format("{}: best product, all threads", kMeasured);
    std::string lines = fmt::format("{}:\n", key);
    lines += one("fp32", fp32 * share, "measured", best);
    lines += one("bf16", bf16 * share, "measured", best + " (conversions included)");
    lines += one("fp16", fp32 * share, "derived", "as fp32: converted");
    lines += one("int8", fp32 * share, "derived", "as fp32: converted");
    return lines + one("fp64", fp32 / 2 * share, "derived", "half of fp32: twice the width");
  };
  text += rates("peak_matrix_flops_per_s", 1) + rates("sustained_matrix_flops_per_s", 1);
  text += fact("peak_vector_fp32_flops_per_s", fp32, "derived", "the vector units are what the products run on");
  text += fact("clock_boost_hz", 2.5e9, "assumed", "not measured; used for exponentials only");
  text += fact("transcendental_per_clock_per_unit", 0.8, "assumed", "about 10 cycles for 8 lanes of an exponential");
  const auto l2 = std::max(host.private_l2.value, 65536.0);
  text += fact("shared_memory_bytes_per_unit", l2, "datasheet", "/sys/devices/system/cpu of this machine (level 2)");
  text += fact("register_bytes_per_unit", 1024, "assumed", "32 registers of 32 bytes");
  text +=
      fact("l2_bytes_per_die", c.last_level_bytes, "datasheet", "/sys/devices/system/cpu of this machine (level 3)");
  text += measured("l2_bytes_per_s", c.cache_bytes_per_s, "copy inside the last-level cache, bytes read and written");
  if (host.memory.value > 0) text += fact("hbm_bytes", host.memory.value, "datasheet", "/proc/meminfo of this machine");
  if (host.memory.value <= 0) text += fact("hbm_bytes", 8e9 * cores, "assumed", "the machine does not say");
  text += measured("hbm_peak_bytes_per_s", c.copy_bytes_per_s, "large copy; the data-sheet rate is not known");
  text += measured("hbm_sustained_bytes_per_s", c.copy_bytes_per_s, "large copy, bytes read and written");
  text += fact("memory_line_bytes", 64, "datasheet", "x86-64 and Arm server cores: 64-byte cache lines");
  text += measured("kernel_fixed_s", std::max(c.fork_s, 1e-9), "an empty parallel loop");
  text += fact("host_launch_s", 2e-7, "assumed", "a function call and its bookkeeping");
  text += measured("host_link_bytes_per_s", c.copy_bytes_per_s, "the CPU is its own host: large copy");
  text += fact("power_w", 5 * cores, "assumed", "5 W a core");
  return text;
}

// What the file holds beside the machine's name and the grids.
struct NamedNumber {
  const char* key;
  double Calibration::*member;
  bool may_be_zero = false;
};
constexpr NamedNumber kNumbers[] = {
    {"last_level_bytes", &Calibration::last_level_bytes},
    {"kept_bytes", &Calibration::kept_bytes},
    {"aged_bytes", &Calibration::aged_bytes},
    {"near_table_bytes", &Calibration::near_table_bytes},
    {"warm_table_bytes", &Calibration::warm_table_bytes},
    {"cold_table_bytes", &Calibration::cold_table_bytes},
    {"far_table_bytes", &Calibration::far_table_bytes},
    {"far_lookup_s", &Calibration::far_lookup_s, true},
    {"far_update_s", &Calibration::far_update_s, true},
    {"fork_s", &Calibration::fork_s},
    {"lookup_call_s", &Calibration::lookup_call_s},
    {"sort_pass_s", &Calibration::sort_pass_s},
    {"copy_bytes_per_s", &Calibration::copy_bytes_per_s},
    {"copy_one_thread_bytes_per_s", &Calibration::copy_one_thread_bytes_per_s},
    {"cache_bytes_per_s", &Calibration::cache_bytes_per_s},
    {"gemm_flops_per_s", &Calibration::gemm_flops_per_s},
    {"gemm_bf16_flops_per_s", &Calibration::gemm_bf16_flops_per_s},
    {"gemm_one_thread_flops_per_s", &Calibration::gemm_one_thread_flops_per_s},
    {"spread", &Calibration::spread, true},
};

double DaysSince(const std::string& date) {
  std::tm then{};
  if (strptime(date.c_str(), "%Y-%m-%d", &then) == nullptr) return 1e9;
  return std::difftime(std::time(nullptr), timegm(&then)) / 86400;
}

}  // namespace

const MeasuredGrid& Calibration::Grid(const std::string& name) const {
  const auto found = grids.find(name);
  PORTOLAN_CHECK(found != grids.end(), "a kernel that calibrate does not measure");
  return found->second;
}

double Calibration::Lost(double age_s) const {
  const MeasuredGrid& grid = Grid("cache_age");
  const double kept = *std::min_element(grid.seconds.begin(), grid.seconds.end()), lost = grid.seconds.back();
  if (age_s <= grid.axes[0].front() || lost <= kept) return 0;
  const double oldest = grid.axes[0][grid.axes[0].size() - 2];
  return std::clamp((grid.At({std::min(age_s, oldest)}) - kept) / (lost - kept), 0.0, 1.0);
}

double Calibration::MissSecondsPerByte() const {
  const std::vector<double>& seconds = Grid("cache_age").seconds;
  return (seconds.back() - *std::min_element(seconds.begin(), seconds.end())) / aged_bytes;
}

const std::map<std::string, size_t>& CalibratedGrids() {
  static const auto* const kGrids = [] {
    auto* grids = new std::map<std::string, size_t>;
    const auto add = [&](const std::string& name, size_t axes) { grids->emplace(name, axes); };
    for (const std::string kind : {"", "relu_", "sigmoid_", "silu_", "gelu_"}) {
      for (const char* pass : {"forward", "backward"}) {
        add("bias_" + kind + pass, 2);
        if (!kind.empty()) add(kind + pass, 2);
      }
    }
    for (const char* kernel : {"broadcast", "column_sums", "multiply", "accumulate", "copy_rows", "cross_forward",
                               "cross_backward", "norm_forward", "norm_backward"}) {
      add(kernel, 2);
    }
    for (const char* kernel : {"dot_forward", "dot_backward", "pair_products", "pair_gradients", "pick_pairs"}) {
      add(kernel, 3);
    }
    for (const char* layout : {"nt", "nn", "tn"}) {
      add(std::string("gemm.fp32.") + layout, 3);
      add(std::string("gemm.bf16.") + layout, 3);
    }
    add("bce", 1);
    add("cache_age", 1);
    add("embedding_forward.fp32.near", 2);
    add("squared_norm", 1);
    add("embedding_forward.fp32.spilled", 2);
    add("embedding_fused.sgd.spilled", 2);
    for (const std::string way : {"fused.", "separate."}) {
      for (const char* optimizer : {"sgd", "momentum", "adagrad", "adam"}) add("dense_" + way + optimizer, 1);
      add("embedding_" + way + "lookups", 3);
    }
    for (const char* level : {".warm", ".cold"}) {
      for (const std::string format : {"fp32", "fp16", "bf16", "int8"}) {
        add("embedding_forward." + format + level, 2);
      }
      for (const std::string update :
           {"sgd", "adagrad", "rowwise_adagrad", "adam", "rowwise_adam", "fp16", "bf16", "int8"}) {
        add("embedding_fused." + update + level, 2);
        add("embedding_separate." + update + level, 2);
      }
    }
    return grids;
  }();
  return *kGrids;
}

std::string UserDataDirectory() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::string(config) + "/portolan";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.config/portolan";
  return "";
}

Status WriteCalibration(const Calibration& c, const std::string& folder) {
  std::string text =
      "# Times of this machine's kernels by `portolan calibrate` (docs/calibrate.md); written again by the next run.\n";
  text += fmt::format("machine: {}\ndate: {}\nthreads: {}\n", Quoted(c.machine), c.date, c.threads);
  for (const NamedNumber& number : kNumbers) text += fmt::format("{}: {:.10g}\n", number.key, c.*number.member);
  text += fmt::format("probe_s: {}\n", Numbers({c.probe_s.begin(), c.probe_s.end()}));
  text += "warnings:\n";
  for (const std::string& warning : c.warnings) text += "  - " + Quoted(warning) + "\n";
  text += "grids:\n";
  for (const auto& [name, grid] : c.grids) {
    text += fmt::format("  {}:\n    axes:\n", name);
    for (const std::vector<double>& axis : grid.axes) text += fmt::format("    - {}\n", Numbers(axis));
    text += fmt::format("    seconds: {}\n", Numbers(grid.seconds));
  }
  const std::filesystem::path base(folder);
  PORTOLAN_RETURN_IF_ERROR(WriteFile(base / "calibration" / "cpu.yaml", text));
  return WriteFile(base / "accelerators" / "cpu.yaml", AcceleratorText(c));
}

Result<Calibration> ReadCalibration(const std::string& folder) {
  PORTOLAN_ASSIGN_OR_RETURN(const YamlValue value, YamlValue::Load(folder + "/calibration/cpu.yaml"));
  PORTOLAN_ASSIGN_OR_RETURN(YamlMap map, value.Map());
  Calibration c;
  c.machine = map.String("machine");
  c.date = map.String("date");
  c.threads = static_cast<int>(map.Integer("threads", {1, 1e6}));
  for (const NamedNumber& number : kNumbers) {
    c.*number.member = map.Number(number.key, number.may_be_zero ? kNonNegative : kPositive);
  }
  map.Visit("probe_s", [&](const YamlValue& times) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, times.Elements());
    if (elements.size() != kKernelClasses) {
      return times.MakeError(ErrorCode::kInvalidValue, fmt::format("must have {} times", kKernelClasses));
    }
    for (size_t i = 0; i < kKernelClasses; ++i) {
      PORTOLAN_ASSIGN_OR_RETURN(c.probe_s[i], elements[i].Number(kPositive));
    }
    return {};
  });
  for (const YamlValue& warning : map.Elements("warnings")) {
    PORTOLAN_ASSIGN_OR_RETURN(std::string text, warning.String());
    c.warnings.push_back(std::move(text));
  }
  map.Visit("grids", [&](const YamlValue& grids) -> Status {
    PORTOLAN_ASSIGN_OR_RETURN(YamlMap names, grids.Map());
    for (const auto& [name, entry] : names.Entries()) {
      PORTOLAN_ASSIGN_OR_RETURN(MeasuredGrid grid, ReadMeasuredGrid(entry, kPositive));
      if (name == "cache_age" && grid.seconds.size() < 3) {
        return entry.MakeError(ErrorCode::kInvalidValue, "must have two ages at least, and lost data last");
      }
      const auto known = CalibratedGrids().find(name);
      if (known == CalibratedGrids().end() || known->second != grid.axes.size()) {
        return entry.MakeError(ErrorCode::kInvalidValue,
                               known == CalibratedGrids().end()
                                   ? "no kernel has this name; `portolan calibrate` writes the file anew"
                                   : fmt::format("must have {} axes, has {}", known->second, grid.axes.size()));
      }
      c.grids[name] = std::move(grid);
    }
    PORTOLAN_RETURN_IF_ERROR(names.Finish());
    for (const auto& [name, axes] : CalibratedGrids()) {
      if (c.grids.count(name) > 0) continue;
      return grids.MakeError(ErrorCode::kMissingField,
                             name + ": required, but missing; `portolan calibrate` writes the file anew");
    }
    return {};
  });
  PORTOLAN_RETURN_IF_ERROR(map.Finish());
  if (c.probe_s[0] <= 0) return value.MakeError(ErrorCode::kMissingField, "probe_s: required, but missing");
  return c;
}

Result<Calibration> CalibrationOfThisMachine(const std::string& folder, double max_age_days,
                                             const std::function<void(const std::string&, double)>& progress) {
  std::error_code ignored;
  if (!folder.empty() && std::filesystem::exists(folder + "/calibration/cpu.yaml", ignored)) {
    Result<Calibration> kept = ReadCalibration(folder);
    // A file of another machine, of older kernels, or broken: measured anew.
    if (kept && kept->machine == MachineKey() && DaysSince(kept->date) <= max_age_days) return kept;
  }
  Calibration measured = MeasureMachine(progress);
  if (!folder.empty()) PORTOLAN_RETURN_IF_ERROR(WriteCalibration(measured, folder));
  return measured;
}

}  // namespace portolan
