#include "compile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "porting_options.h"

namespace portolan {
namespace {

constexpr size_t kNameWidth = 30;

std::string Shorten(const std::string& name) {
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

}  // namespace

void PrintCompileReport(const CompileReport& report, const PortTarget& target) {
  if (!report.absent.empty()) {
    fmt::print("\nNot compiled: {}.\n", report.absent);
    return;
  }
  const int timed_out = report.Count(CompiledUnit::End::kTimedOut);
  fmt::print("\nCompiled for {} with {}\n({}): {} of {} sources{}.\n", target.gfx, report.compiler, report.headers,
             report.Count(CompiledUnit::End::kCompiled), report.units.size(),
             timed_out > 0 ? fmt::format(", {} not in time", timed_out) : "");
  bool any = false;
  bool guessed = false;
  std::set<std::string> missing;
  for (const CompiledUnit& unit : report.units) {
    missing.insert(unit.missing.begin(), unit.missing.end());
    for (const CompiledKernel& kernel : unit.kernels) {
      if (!any) {
        fmt::print("{:<30} {:>5} {:>5} {:>5} {:>6} {:>7} {:>7} {:>6}  {}\n", "kernel", "vgpr", "agpr", "sgpr", "spills",
                   "scratch", "lds", "waves", "limited by");
      }
      any = true;
      const KernelResources& resources = kernel.resources;
      guessed = guessed || resources.dynamic_stack;
      fmt::print("{:<30} {:>5} {:>5} {:>5} {:>6} {:>7} {:>7} {:>6}  {}{}\n", Shorten(resources.name),
                 resources.vector_registers, resources.accumulation_registers, resources.scalar_registers,
                 resources.vector_spills, resources.scratch_bytes, resources.shared_bytes, kernel.occupancy.waves,
                 kernel.occupancy.limit, resources.dynamic_stack ? " *" : "");
    }
  }
  if (any) {
    fmt::print("{}",
               WrapText("vgpr holds agpr; scratch: bytes a lane; lds: bytes a block; waves: of a SIMD's 8.", 0, 90));
  }
  if (guessed) {
    std::string names;
    for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
    fmt::print("{}", WrapText(fmt::format("* calls a function whose body was not seen{}: its registers are a guess.",
                                          names.empty() ? "" : " (" + names + ")"),
                              0, 80));
  }
  std::vector<Finding> findings;
  for (const CompiledUnit& unit : report.units) {
    findings.insert(findings.end(), unit.findings.begin(), unit.findings.end());
  }
  PrintFindings(findings);
}

}  // namespace portolan
