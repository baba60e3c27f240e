#include "porting/verify/verify.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "porting_options.h"

namespace portolan {
namespace {

constexpr int kColumns = 80;
constexpr int kIndent = 4;

struct Options {
  PortingOptions porting;
  VerifyOptions verify;
  bool rename = false;
  std::vector<std::string> constants;  // NAME=VALUE
  int seconds = 60;
  int compile_seconds = 300;
  int memory_gib = 4;
};

// The runtime that programs are linked with: beside the headers that the build or the installation has.
void FindRuntime(VerifyOptions* verify) {
  const char* folder = std::getenv("PORTOLAN_HOST_GPU_DIR");
  verify->include_dir = folder != nullptr ? std::string(folder) + "/include" : PORTOLAN_HOST_GPU_INCLUDE;
  verify->library = folder != nullptr ? std::string(folder) + "/libportolan_host_gpu.a" : PORTOLAN_HOST_GPU_LIBRARY;
  verify->boost_context = "-lboost_context";
}

void Print(const std::string& text, int indent) { fmt::print("{}", WrapText(text, indent, kColumns)); }

void PrintReport(const VerifyReport& report, const PortTarget& target) {
  for (const VerifyFinding& finding : report.findings) {
    const std::string place =
        finding.place.file.empty() ? "" : fmt::format("{}:{}: ", finding.place.file, finding.place.line);
    Print(fmt::format("{}{}: {} [{}]", place, finding.level == VerifyLevel::kError ? "error" : "warning",
                      finding.message, finding.kind),
          0);
    for (const std::string& detail : finding.details) Print(detail, kIndent);
  }
  if (!report.findings.empty()) fmt::print("\n");
  if (report.verdict == VerifyVerdict::kNotRun) {
    Print(fmt::format("Could not verify for {}: {}.", target.gfx, report.why), 0);
    for (const std::string& detail : report.why_details) Print(detail, kIndent);
    return;
  }
  Print(fmt::format("{} for {}: {} launches with waves of {} lanes, the port's with {}; {} and {} copies to the host "
                    "compared, 2 orders of waves.",
                    report.verdict == VerifyVerdict::kAgrees ? "Agrees" : "Disagrees", target.gfx, report.launches,
                    report.wave_sizes[0], report.wave_sizes[1], report.compared_launches, report.compared_copies),
        0);
  if (!report.ended) Print("Not all of it: the programs did not end by themselves.", 0);
  if (report.largest_relative > 0) {
    Print(fmt::format("Floating-point results differ by at most {:.1e}, taken for rounding.", report.largest_relative),
          0);
  }
}

Result<int> RunVerify(const GlobalOptions& global, Options& options) {
  PORTOLAN_ASSIGN_OR_RETURN(const PortTarget target, ReadTarget(global, options.porting));
  if (target.to_cuda) {
    return MakeError(ErrorCode::kUnsupported, "--to: verify takes CUDA to AMD's chips, not the other way");
  }
  if (options.rename && !options.verify.other.empty()) {
    return MakeError(ErrorCode::kUsage, "give --rename or --port, not both");
  }
  VerifyOptions verify = options.verify;
  verify.project = options.porting.input;
  for (const std::string& constant : options.constants) {
    const size_t equals = constant.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return MakeError(ErrorCode::kUsage, fmt::format("--set {}: should be NAME=VALUE", constant));
    }
    verify.constants[constant.substr(0, equals)] = constant.substr(equals + 1);
  }
  if (options.rename) verify.port = VerifyPort::kRename;
  if (!verify.other.empty()) verify.port = VerifyPort::kOther;
  verify.limit = std::chrono::seconds(options.seconds);
  verify.compile_limit = std::chrono::seconds(options.compile_seconds);
  verify.memory_bytes = int64_t{options.memory_gib} << 30;
  FindRuntime(&verify);
  if (!std::filesystem::exists(verify.library)) {
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("the runtime '{}' is missing: build portolan_host_gpu, or set PORTOLAN_HOST_GPU_DIR",
                                 verify.library));
  }
  PORTOLAN_ASSIGN_OR_RETURN(const VerifyReport report, Verify(verify, target));
  if (!global.json_path.empty()) {
    PORTOLAN_RETURN_IF_ERROR(WriteJsonFile(global.json_path, VerifyReportAsJson(report, target)));
  }
  if (global.json_path != "-") PrintReport(report, target);
  switch (report.verdict) {
    case VerifyVerdict::kAgrees:
      return 0;
    case VerifyVerdict::kDisagrees:
      return 1;
    case VerifyVerdict::kNotRun:
      return 2;
  }
  return 2;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, const GlobalOptions& global, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* verify = app.add_subcommand("verify", "Run a program and its port on the CPU, compare");
  verify->add_option("source", options->porting.input, "A CUDA or HIP project's folder")->required()->type_name("DIR");
  verify->add_option("--to", options->porting.target, HelpText("The target: an accelerator (mi350x) or a gfx name"))
      ->required()
      ->type_name("TARGET");
  verify->add_option("--run", options->verify.run, HelpText("The program's command line; default: the Makefile's run"))
      ->type_name("CMD");
  verify->add_option("--port", options->verify.other, HelpText("A port that is there already, instead of Portolan's"))
      ->type_name("DIR");
  verify->add_flag("--rename", options->rename,
                   HelpText("Hold the sources themselves, on 64 lanes, against the original"));
  verify
      ->add_option("--set", options->constants,
                   HelpText("Another value of a macro or constant of the sources; may be repeated"))
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verify->add_option("--seconds", options->seconds, HelpText("Limit of one run, processor time of each program"))
      ->capture_default_str()
      ->check(CLI::Range(1, 86400))
      ->type_name("S");
  verify->add_option("--compile-seconds", options->compile_seconds, HelpText("Limit of one compiler call"))
      ->capture_default_str()
      ->check(CLI::Range(1, 86400))
      ->type_name("S");
  verify->add_option("--memory", options->memory_gib, HelpText("Device memory of each program"))
      ->capture_default_str()
      ->check(CLI::Range(1, 512))
      ->type_name("GIB");
  verify->add_option("--compiler", options->verify.compiler, HelpText("The host's compiler: GCC 12 or later"))
      ->capture_default_str()
      ->type_name("PROGRAM");
  verify->add_option("--keep", options->verify.keep_folder, HelpText("Leave the translated programs in this folder"))
      ->type_name("DIR");
  verify->callback([&global, exit_code, options] {
    const auto result = RunVerify(global, *options);
    *exit_code = result ? *result : 2;
    if (!result) ReportError(result.error());
  });
}

}  // namespace portolan
