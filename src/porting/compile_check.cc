#include "porting/compile_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/text.h"
#include "porting/compile_flags.h"
#include "porting/process.h"
#include "porting/toolchain.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownErrors = 3;  // of a source; the rest mostly follows from them

// Symbols that ROCm's device library defines.
bool IsLibrarySymbol(std::string_view symbol) {
  for (const std::string_view start : {"__ocml_", "__ockl_", "__oclc_", "__asan_", "__hip_", "__llvm_"}) {
    if (symbol.substr(0, start.size()) == start) return true;
  }
  return false;
}

// ns::scale<float> is launched as scale.
std::string LaunchedName(const std::string& name) {
  const std::string plain = name.substr(0, name.find('<'));
  const size_t colons = plain.rfind("::");
  return colons == std::string::npos ? plain : plain.substr(colons + 2);
}

class UnitCompiler {
 public:
  UnitCompiler(const PortReport& port, const CompileOptions& options, const PortTarget& target, const Toolchain& tools,
               const ProjectFlags& flags, const std::string& folder)
      : port_(port), options_(options), target_(target), tools_(tools), flags_(flags), folder_(folder) {}

  CompiledUnit Compile(const PortedUnit& unit, size_t index) const {
    CompiledUnit result;
    result.source = unit.source;
    const CompileFlags flags = flags_.Of(unit.source);
    const std::string source = (fs::path(options_.root) / unit.source).string();
    const std::string stem = folder_ + "/unit" + std::to_string(index);
    if (unit.device) {
      std::vector<std::string> command = Command(flags, unit);
      command.insert(command.end(), tools_.device_flags.begin(), tools_.device_flags.end());
      command.insert(command.end(),
                     {"--cuda-device-only", "--no-gpu-bundle-output", "-emit-llvm", "-c", source, "-o", stem + ".bc"});
      if (!Run(command, &result)) return result;
      const ProcessResult code =
          RunProcess({tools_.compiler, "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target_.gfx, "-nogpulib", "-O3", "-w",
                      "-fno-color-diagnostics", "-Rpass-analysis=kernel-resource-usage", "-x", "ir", "-c", stem + ".bc",
                      "-o", stem + ".o"},
                     options_.limit);
      if (!Took(code, &result)) return result;
      ReadObject(stem + ".o", OccupancyRemarks(code.output), flags.relocatable, &result);
    }
    std::vector<std::string> command = Command(flags, unit);
    if (unit.device) command.push_back("--cuda-host-only");
    command.insert(command.end(), {"-fsyntax-only", source});
    if (!Run(command, &result)) return result;
    result.end = CompiledUnit::End::kCompiled;
    return result;
  }

 private:
  std::vector<std::string> Command(const CompileFlags& flags, const PortedUnit& unit) const {
    std::vector<std::string> command = {tools_.compiler};
    const std::string extension = fs::path(unit.source).extension().string();
    if (unit.device) {
      command.insert(command.end(), {"-x", "hip", "--offload-arch=" + target_.gfx, "-O3"});
    } else {
      command.insert(command.end(), {"-x", extension == ".c" ? "c" : "c++"});
    }
    // Includes of ROCm for a source that only the host compiler sees.
    if (!unit.device) {
      for (size_t i = 0; i + 1 < tools_.common_flags.size(); ++i) {
        if (tools_.common_flags[i] != "-isystem") continue;
        command.insert(command.end(), {"-isystem", tools_.common_flags[i + 1]});
      }
      if (!options_.rocm_path.empty()) {
        command.insert(command.end(), {"-isystem", options_.rocm_path + "/include"});
      }
      command.insert(command.end(),
                     {"-D__HIP_PLATFORM_AMD__=1", "-w", "-fno-caret-diagnostics", "-fno-color-diagnostics"});
    } else {
      command.insert(command.end(), tools_.common_flags.begin(), tools_.common_flags.end());
    }
    bool has_standard = false;
    for (const std::string& flag : flags.flags) {
      const bool standard = flag.rfind("-std=", 0) == 0;
      if (standard && (flag.find("++") == std::string::npos) != (extension == ".c")) continue;
      has_standard = has_standard || standard;
      command.push_back(flag);
    }
    if (!has_standard && extension != ".c") command.push_back("-std=c++17");
    command.insert(command.end(), options_.extra_flags.begin(), options_.extra_flags.end());
    return command;
  }

  bool Run(const std::vector<std::string>& command, CompiledUnit* result) const {
    return Took(RunProcess(command, options_.limit), result);
  }

  // Whether a compiler call did its work; if not, what it said becomes findings.
  bool Took(const ProcessResult& done, CompiledUnit* result) const {
    result->seconds += done.seconds;
    if (done.Succeeded()) return true;
    Finding finding = {result->source, {}, FindingLevel::kError, "compile-error", "", ""};
    if (done.end == ProcessResult::End::kTimedOut) {
      result->end = CompiledUnit::End::kTimedOut;
      finding.level = FindingLevel::kWarning;
      finding.kind = "compile-timeout";
      finding.message = fmt::format("the compiler did not end in {} s", options_.limit.count());
      finding.action = "--compile-seconds gives it more";
      result->findings.push_back(finding);
      return false;
    }
    result->end = CompiledUnit::End::kFailed;
    std::vector<Finding> errors = FindDiagnostics(done.output, options_.root);
    if (errors.empty()) {
      const std::string line = done.output.substr(0, done.output.find('\n'));
      finding.message = line.empty() ? fmt::format("the compiler ended with {}", done.code) : line;
      errors.push_back(finding);
    }
    for (Finding& error : errors) {
      if (error.file.empty()) error.file = result->source;
      if (error.kind == "shared-memory") {
        error.message += fmt::format("; a compute unit of {} ({}) has {}", target_.gfx, target_.accelerator_name,
                                     target_.shared_memory_bytes);
      }
    }
    if (errors.size() > kShownErrors) {
      errors[kShownErrors - 1].action =
          fmt::format("{} more errors follow in this source", errors.size() - kShownErrors);
      errors.resize(kShownErrors);
    }
    std::move(errors.begin(), errors.end(), std::back_inserter(result->findings));
    return false;
  }

  void ReadObject(const std::string& path, const std::map<std::string, int>& remarks, bool relocatable,
                  CompiledUnit* result) const {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto object = ReadCodeObject(bytes);
    if (!object) {
      result->findings.push_back(
          {result->source, {}, FindingLevel::kError, "compile-error", object.error().message, ""});
      return;
    }
    for (const std::string& symbol : object->undefined) {
      if (IsLibrarySymbol(symbol)) {
        result->missing.push_back(symbol);
      } else if (!relocatable) {
        result->findings.push_back(
            {result->source,
             {},
             FindingLevel::kError,
             "compile-error",
             fmt::format("device code uses '{}', which no source that it includes defines", symbol),
             "compile with -fgpu-rdc, or define it here"});
      }
    }
    for (KernelResources& resources : object->kernels) {
      CompiledKernel kernel;
      kernel.resources = std::move(resources);
      const auto remark = remarks.find(kernel.resources.symbol);
      if (remark != remarks.end()) kernel.compiler_waves = remark->second;
      Judge(&kernel, result);
      result->kernels.push_back(std::move(kernel));
    }
  }

  void Judge(CompiledKernel* kernel, CompiledUnit* result) const {
    const KernelResources& resources = kernel->resources;
    const std::string name = LaunchedName(resources.name);
    const auto launches = port_.launched_blocks.find(name);
    bool all_known = launches != port_.launched_blocks.end() && !launches->second.empty();
    if (all_known) {
      all_known = *launches->second.begin() > 0;
      kernel->launched_threads = static_cast<int>(std::clamp<long long>(*launches->second.rbegin(), 0, 1 << 20));
    }
    kernel->occupancy = OccupancyOf(resources, kernel->launched_threads, target_);
    Finding finding = {result->source, {}, FindingLevel::kError, "launch-bounds", "", ""};
    const auto place = port_.kernels.find(name);
    if (place != port_.kernels.end()) {
      finding.file = place->second.first;
      finding.position = place->second.second;
    }
    if (kernel->launched_threads > resources.largest_block && resources.largest_block > 0) {
      finding.message = fmt::format("'{}' is launched with {} threads a block and compiled for at most {}",
                                    resources.name, kernel->launched_threads, resources.largest_block);
      finding.action = fmt::format("__launch_bounds__({})", kernel->launched_threads);
      result->findings.push_back(finding);
    }
    if (resources.shared_bytes > target_.shared_memory_bytes) {
      finding.kind = "shared-memory";
      finding.message =
          fmt::format("'{}' has {} bytes of shared memory; a compute unit of {} ({}) has {}", resources.name,
                      resources.shared_bytes, target_.gfx, target_.accelerator_name, target_.shared_memory_bytes);
      finding.action = "use smaller tiles";
      result->findings.push_back(finding);
    }
    if (resources.vector_spills > 0) {
      finding.level = FindingLevel::kWarning;
      finding.kind = "register-spill";
      finding.message =
          fmt::format("'{}' spills {} vector registers to scratch ({} bytes a lane) with {} registers", resources.name,
                      resources.vector_spills, resources.scratch_bytes, resources.vector_registers);
      const int launched = kernel->launched_threads;
      finding.action = all_known && launched < resources.largest_block
                           ? fmt::format(
                                 "it is compiled for {} threads and launched with {}: __launch_bounds__({}) "
                                 "leaves more registers to a thread",
                                 resources.largest_block, launched, launched)
                           : "smaller tiles, less unrolling or a smaller launch bound";
      result->findings.push_back(finding);
    }
  }

  const PortReport& port_;
  const CompileOptions& options_;
  const PortTarget& target_;
  const Toolchain& tools_;
  const ProjectFlags& flags_;
  const std::string& folder_;
};

}  // namespace

int CompileReport::Count(CompiledUnit::End end) const {
  return static_cast<int>(
      std::count_if(units.begin(), units.end(), [end](const CompiledUnit& unit) { return unit.end == end; }));
}

std::vector<Finding> FindDiagnostics(const std::string& output, const std::string& root) {
  std::vector<Finding> findings;
  for (const std::string& line : Split(output, '\n')) {
    size_t mark = line.find(" error: ");
    size_t length = 8;
    const size_t fatal = line.find(" fatal error: ");
    if (fatal != std::string::npos && fatal < mark) {
      mark = fatal;
      length = 14;
    }
    if (mark == std::string::npos && line.rfind("error: ", 0) == 0) {
      mark = 0;
      length = 7;
    }
    if (mark == std::string::npos) continue;
    Finding finding = {"", {}, FindingLevel::kError, "compile-error", line.substr(mark + length), ""};
    // file:line:column: stands before, and nothing else is a place.
    std::vector<std::string> parts = Split(line.substr(0, mark), ':');
    long long row = 0;
    long long column = 0;
    if (parts.size() >= 4 && parts.back().empty() && ParseInt64(parts[parts.size() - 2], &column) &&
        ParseInt64(parts[parts.size() - 3], &row) && row > 0 && row < 1 << 30 && column > 0 && column < 1 << 30) {
      finding.position = {static_cast<int>(row), static_cast<int>(column)};
      parts.resize(parts.size() - 3);
      finding.file = Join(parts, ":");
      if (finding.file.rfind(root + "/", 0) == 0) finding.file.erase(0, root.size() + 1);
    }
    if (finding.message.find("local memory (") != std::string::npos) {
      finding.kind = "shared-memory";
      finding.action = "use smaller tiles";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::map<std::string, int> OccupancyRemarks(const std::string& output) {
  std::map<std::string, int> waves;
  constexpr std::string_view kEnd = " [-Rpass-analysis";
  std::string symbol;
  for (const std::string& line : Split(output, '\n')) {
    const size_t end = line.find(kEnd);
    if (end == std::string::npos) continue;
    for (const std::string_view key : {"Function Name: ", "Occupancy [waves/SIMD]: "}) {
      const size_t at = line.find(key);
      if (at == std::string::npos || at + key.size() > end) continue;
      const std::string value = line.substr(at + key.size(), end - at - key.size());
      long long number = 0;
      if (key[0] == 'F') {
        symbol = value;
      } else if (ParseInt64(value, &number) && number > 0 && number <= 64) {
        waves[symbol] = static_cast<int>(number);
      }
    }
  }
  return waves;
}

Result<CompileReport> CompilePort(const PortReport& port, const CompileOptions& options, const PortTarget& target) {
  if (target.to_cuda) {
    CompileReport report;
    report.absent = "the check by compiling is for AMD's chips";
    return report;
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) return MakeError(ErrorCode::kIo, "cannot make a work folder in $TMPDIR or /tmp");
  PORTOLAN_ASSIGN_OR_RETURN(const Toolchain tools, FindToolchain(options, target, folder.path()));
  CompileReport report;
  report.absent = tools.absent;
  report.compiler = tools.compiler;
  report.headers = tools.headers;
  if (tools.compiler.empty()) return report;
  std::error_code error;
  CompileOptions absolute = options;
  absolute.root = fs::absolute(options.root, error).lexically_normal().string();
  while (absolute.root.size() > 1 && absolute.root.back() == '/') absolute.root.pop_back();
  std::vector<std::string> sources;
  for (const std::string& file : port.source_files) sources.push_back(file);
  const ProjectFlags flags(absolute.root, sources, port.source_files);
  const UnitCompiler compiler(port, absolute, target, tools, flags, folder.path());
  report.units.resize(port.units.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < port.units.size(); i = next++) report.units[i] = compiler.Compile(port.units[i], i);
  };
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const size_t jobs = std::min<size_t>(options.jobs > 0 ? static_cast<size_t>(options.jobs) : processors,
                                       std::max<size_t>(1, port.units.size()));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return report;
}

nlohmann::ordered_json CompileReportAsJson(const CompileReport& report) {
  nlohmann::ordered_json json;
  if (!report.absent.empty()) {
    json["absent"] = report.absent;
    return json;
  }
  json["compiler"] = report.compiler;
  json["headers"] = report.headers;
  json["compiled"] = report.Count(CompiledUnit::End::kCompiled);
  json["failed"] = report.Count(CompiledUnit::End::kFailed);
  json["timed_out"] = report.Count(CompiledUnit::End::kTimedOut);
  json["units"] = nlohmann::ordered_json::array();
  for (const CompiledUnit& unit : report.units) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const CompiledKernel& kernel : unit.kernels) {
      const KernelResources& resources = kernel.resources;
      kernels.push_back({{"name", resources.name},
                         {"symbol", resources.symbol},
                         {"vgpr_count", resources.vector_registers},
                         {"agpr_count", resources.accumulation_registers},
                         {"sgpr_count", resources.scalar_registers},
                         {"vgpr_spill_count", resources.vector_spills},
                         {"sgpr_spill_count", resources.scalar_spills},
                         {"scratch_bytes_per_lane", resources.scratch_bytes},
                         {"lds_bytes_per_block", resources.shared_bytes},
                         {"largest_block_threads", resources.largest_block},
                         {"launched_block_threads", kernel.launched_threads},
                         {"waves_per_simd", kernel.occupancy.waves},
                         {"limited_by", kernel.occupancy.limit},
                         {"waves_per_simd_by_compiler", kernel.compiler_waves},
                         {"dynamic_stack", resources.dynamic_stack}});
    }
    const char* const ends[] = {"compiled", "failed", "timed out"};
    json["units"].push_back({{"source", unit.source},
                             {"end", ends[static_cast<int>(unit.end)]},
                             {"library_functions_without_body", unit.missing},
                             {"kernels", kernels}});
  }
  return json;
}

}  // namespace portolan
