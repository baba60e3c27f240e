#include "porting/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "base/text.h"
#include "porting/compile_flags.h"
#include "porting/port.h"
#include "porting/process.h"
#include "porting/verify/host_build.h"
#include "porting/verify/verify_findings.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20261201;  // of the random order; any will do
constexpr uint8_t kOtherFill = 0x3c;  // reads as 0.0115 in float, 1.06 in half, and is far outside as an index

// The words behind the program in a run command, up to the shell's signs.
std::vector<std::string> ArgumentsOf(const std::string& command) {
  std::vector<std::string> words = ShellWords(command);
  size_t first = 0;
  while (first < words.size() && words[first].find('=') != std::string::npos && words[first][0] != '.') ++first;
  std::vector<std::string> arguments;
  for (size_t i = first + 1; i < words.size(); ++i) {
    if (words[i] == "|" || words[i] == ">" || words[i] == "<" || words[i] == "&&" || words[i] == "2>&1" ||
        words[i] == ";" || words[i] == "&" || words[i] == "||") {
      break;
    }
    arguments.push_back(words[i]);
  }
  return arguments;
}

bool UsesHip(const std::string& project) {
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(project, error); entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (error) break;
    const std::string extension = entry->path().extension().string();
    if (!entry->is_regular_file(error) || (extension != ".cu" && extension != ".cpp" && extension != ".h" &&
                                           extension != ".hip" && extension != ".hpp" && extension != ".cuh")) {
      continue;
    }
    std::ifstream file(entry->path());
    for (std::string line; std::getline(file, line);) {
      if (line.find("include") != std::string::npos && line.find("hip/hip_runtime") != std::string::npos) return true;
    }
  }
  return false;
}

class Verifier {
 public:
  Verifier(const VerifyOptions& options, const PortTarget& target) : options_(options), target_(target) {}

  Result<VerifyReport> Run() {
    std::error_code error;
    if (!fs::is_directory(options_.project, error)) {
      return MakeError(ErrorCode::kNotFound, fmt::format("'{}' is no folder with a project", options_.project));
    }
    options_.project = fs::canonical(options_.project, error).string();
    report_.port = options_.port == VerifyPort::kPort     ? "the port"
                   : options_.port == VerifyPort::kRename ? "the renamed program"
                                                          : "the given port";
    std::string work = options_.keep_folder;
    if (work.empty()) {
      temporary_ = std::make_unique<TemporaryFolder>();
      work = temporary_->path();
    }
    if (work.empty()) return MakeError(ErrorCode::kIo, "no folder could be made below $TMPDIR or /tmp");
    fs::create_directories(work, error);
    work_ = fs::absolute(work).string();
    PORTOLAN_ASSIGN_OR_RETURN(const bool built, Build());
    if (!built) return std::move(report_);
    PORTOLAN_RETURN_IF_ERROR(Compare());
    return std::move(report_);
  }

 private:
  HostBuildOptions BuildOptions(const std::string& project, const char* name, int wave, bool hip) const {
    HostBuildOptions build;
    build.project = project;
    build.work_folder = (fs::path(work_) / name).string();
    build.siblings_of = options_.project;
    build.include_dir = options_.include_dir;
    build.library = options_.library;
    build.boost_context = options_.boost_context;
    build.compiler = options_.compiler;
    build.wave_size = wave;
    build.hip = hip;
    build.target = &target_;
    build.constants = options_.constants;
    build.limit = options_.compile_limit;
    return build;
  }

  void NotRun(std::string why, std::vector<std::string> details = {}) {
    report_.verdict = VerifyVerdict::kNotRun;
    report_.why = std::move(why);
    report_.why_details = std::move(details);
  }

  Result<bool> Build() {
    const bool hip = UsesHip(options_.project);
    const BuildPlan plan = FindBuildPlan(options_.project);
    if (plan.programs.empty()) {
      NotRun("no source of a program was found");
      return false;
    }
    std::string command = options_.run;
    if (command.empty()) command = plan.run_commands.empty() ? "./" + plan.programs[0].name : plan.run_commands[0];
    report_.command = command;
    arguments_ = ArgumentsOf(command);

    PORTOLAN_ASSIGN_OR_RETURN(programs_[0], BuildForHost(BuildOptions(options_.project, "original", 32, hip), plan));
    report_.build_seconds[0] = programs_[0].seconds;
    for (const auto& [name, value] : options_.constants) {
      if (programs_[0].constants.count(name) > 0) continue;
      return MakeError(ErrorCode::kNotFound,
                       fmt::format("--set {}={}: the sources of '{}' define no macro or constant of this name", name,
                                   value, options_.project));
    }
    if (programs_[0].path.empty()) {
      NotRun("the original does not compile for the host", programs_[0].why);
      return false;
    }
    HostBuildOptions port = BuildOptions(options_.project, "port", target_.wave_size, hip);
    BuildPlan port_plan = plan;
    if (options_.port == VerifyPort::kPort && !hip) {
      PortOptions porting;
      porting.input = options_.project;
      porting.output = (fs::path(work_) / "ported").string();
      PORTOLAN_ASSIGN_OR_RETURN(const PortReport ported, Port(porting, target_));
      port.project = porting.output;
      port.hip = true;
      // The plan's folders are those of the original.
      for (BuildProgram& program : port_plan.programs) {
        for (BuildUnit& unit : program.units) {
          for (std::string& flag : unit.flags) {
            const size_t at = flag.find(options_.project);
            if (at != std::string::npos) flag.replace(at, options_.project.size(), porting.output);
          }
        }
      }
    } else if (options_.port == VerifyPort::kOther) {
      std::error_code error;
      if (!fs::is_directory(options_.other, error)) {
        return MakeError(ErrorCode::kNotFound, fmt::format("'{}' is no folder with a port", options_.other));
      }
      port.project = fs::canonical(options_.other, error).string();
      port.siblings_of = port.project;
      port.hip = UsesHip(port.project);
      port_plan = FindBuildPlan(port.project);
    }
    PORTOLAN_ASSIGN_OR_RETURN(programs_[1], BuildForHost(port, port_plan));
    report_.build_seconds[1] = programs_[1].seconds;
    report_.wave_sizes[1] = target_.wave_size;
    if (programs_[1].path.empty()) {
      NotRun("the port does not compile for the host", programs_[1].why);
      return false;
    }
    for (size_t i = 0; i < 2; ++i) {
      compared_[i] = {programs_[i].folder, report_.wave_sizes[i],
                      std::make_unique<CodePlaces>(programs_[i].path, programs_[i].folder)};
    }
    return true;
  }

  RunSide SideOf(size_t program, uint64_t seed, uint8_t fill) const {
    return {programs_[program].path,
            "./" + programs_[0].plan.programs[0].name,
            programs_[program].folder,
            arguments_,
            seed,
            fill};
  }

  Result<PairResult> RunBoth(const RunSide& a, const RunSide& b, Watch watch = {}) {
    RunOptions run;
    run.limit = options_.limit;
    run.memory_limit = options_.memory_bytes;
    run.watch = watch;
    run.stop_after_watch = watch.launch > 0;
    const RunSide sides[2] = {a, b};
    Result<PairResult> pair = RunPair(sides, run);
    if (pair) report_.run_seconds += pair->seconds;
    return pair;
  }

  static bool Ended(const SideResult& side) { return side.end == SideResult::End::kExited; }

  // Whether the two runs differ in what a user sees.
  static bool OutputsDiffer(const PairResult& pair) {
    return Ended(pair.side[0]) && Ended(pair.side[1]) &&
           (pair.side[0].code != pair.side[1].code || pair.side[0].output != pair.side[1].output);
  }

  Status Compare() {
    PORTOLAN_ASSIGN_OR_RETURN(const PairResult in_step, RunBoth(SideOf(0, 0, 0), SideOf(1, 0, 0)));
    report_.launches = in_step.side[0].launches;
    report_.compared_launches = in_step.compared_launches;
    report_.compared_copies = in_step.compared_copies;
    report_.largest_relative = in_step.largest_relative;
    report_.ended = Ended(in_step.side[0]) && Ended(in_step.side[1]);
    if (in_step.side[0].why.rfind("not supported", 0) == 0) {
      NotRun(in_step.side[0].why);
      return {};
    }
    if (in_step.side[1].why.rfind("not supported", 0) == 0) {
      NotRun("the port: " + in_step.side[1].why);
      return {};
    }
    const bool late = in_step.side[0].end == SideResult::End::kTimeLimit && in_step.side[1].why.empty();
    if (late && in_step.differences.empty() && in_step.parted.empty()) {
      // Another order of the waves takes no less time: what was seen so far is told, and no more is run.
      writer_.AddFaults(in_step, {});
      writer_.AddLimits(in_step);
      Conclude(in_step);
      return {};
    }
    PORTOLAN_ASSIGN_OR_RETURN(const PairResult shuffled, RunBoth(SideOf(0, 0, 0), SideOf(1, kSeed, kOtherFill)));
    const bool suspicious = !in_step.differences.empty() || !shuffled.differences.empty() || OutputsDiffer(in_step) ||
                            OutputsDiffer(shuffled) || !in_step.parted.empty() || !shuffled.parted.empty();
    PairResult own;  // the original against itself
    if (suspicious) {
      PORTOLAN_ASSIGN_OR_RETURN(own, RunBoth(SideOf(0, 0, 0), SideOf(0, kSeed, kOtherFill)));
    }
    std::set<DifferenceKey> unstable;
    for (const RunDifference& difference : own.differences) unstable.insert(KeyOf(difference));
    const bool own_output_differs = suspicious && (OutputsDiffer(own) || !own.parted.empty());

    bool told = false;
    PORTOLAN_ASSIGN_OR_RETURN(told, AddDifferences(in_step, 0, 0, unstable, "difference", ""));
    if (!told) {
      PORTOLAN_ASSIGN_OR_RETURN(
          told, AddDifferences(shuffled, kSeed, kOtherFill, unstable, "order",
                               " when its waves run in another order or unwritten memory holds something else"));
    }
    told = writer_.AddOutcome(in_step, own_output_differs, "") || told;
    if (!told) writer_.AddOutcome(shuffled, own_output_differs, " with the port's waves in another order");
    if (!unstable.empty()) writer_.AddOrderDependence(own.differences.front(), unstable.size());
    writer_.AddFaults(in_step, shuffled);
    writer_.AddLimits(in_step);
    Conclude(in_step);
    return {};
  }

  // Whether there were any that the original alone does not show.
  Result<bool> AddDifferences(const PairResult& pair, uint64_t seed, uint8_t fill,
                              const std::set<DifferenceKey>& unstable, const char* kind, const std::string& suffix) {
    std::vector<const RunDifference*> real;
    for (const RunDifference& difference : pair.differences) {
      if (unstable.count(KeyOf(difference)) == 0) real.push_back(&difference);
    }
    if (real.empty()) return false;
    const RunDifference& first = *real.front();
    if (first.at_copy) {
      writer_.AddDifferences(real, nullptr, kind, suffix);
    } else {
      PORTOLAN_ASSIGN_OR_RETURN(const PairResult watched, RunBoth(SideOf(0, 0, 0), SideOf(1, seed, fill),
                                                                  {first.launch.number, first.element_offset}));
      writer_.AddDifferences(real, &watched, kind, suffix);
    }
    return true;
  }

  void Conclude(const PairResult& in_step) {
    const bool errors = std::any_of(report_.findings.begin(), report_.findings.end(),
                                    [](const VerifyFinding& f) { return f.level == VerifyLevel::kError; });
    if (errors) {
      report_.verdict = VerifyVerdict::kDisagrees;
    } else if (!report_.ended) {
      NotRun(EndText(in_step));
    } else if (report_.launches == 0 && report_.compared_copies == 0 &&
               (in_step.side[0].allocations == 0 || in_step.side[0].code != 0 || in_step.side[0].output.empty())) {
      // Where library calls alone use the device, what the program prints is what is compared.
      std::vector<std::string> lines = Split(in_step.side[0].output.substr(0, 400), '\n');
      NotRun(fmt::format("'{}' launched no kernel (exit code {})", report_.command, in_step.side[0].code), lines);
    } else {
      report_.verdict = VerifyVerdict::kAgrees;
    }
  }

  std::string EndText(const PairResult& pair) const {
    for (size_t i = 0; i < 2; ++i) {
      const SideResult& side = pair.side[i];
      const char* name = i == 0 ? "the original" : "the port";
      if (!side.why.empty() && side.why.rfind("signal", 0) != 0) return fmt::format("{}: {}", name, side.why);
      if (side.end == SideResult::End::kTimeLimit) {
        return fmt::format("{} did not end in {} s; {} launches agreed so far", name, options_.limit.count(),
                           pair.compared_launches);
      }
      if (side.end == SideResult::End::kSignalled) return fmt::format("{} ended with signal {}", name, side.code);
    }
    return "the programs did not end";
  }

  VerifyOptions options_;
  const PortTarget& target_;
  std::unique_ptr<TemporaryFolder> temporary_;
  std::string work_;
  std::vector<std::string> arguments_;
  HostProgram programs_[2];
  VerifyReport report_;
  ComparedProgram compared_[2];
  FindingWriter writer_{compared_, target_, &report_.findings};
};

}  // namespace

Result<VerifyReport> Verify(const VerifyOptions& options, const PortTarget& target) {
  return Verifier(options, target).Run();
}

}  // namespace portolan
