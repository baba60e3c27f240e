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

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20261201;  // of the random order; any will do
constexpr uint8_t kOtherFill = 0x3c;  // reads as 0.0115 in float, 1.06 in half, and is far outside as an index
constexpr size_t kMostDetails = 3;    // differences that are told besides the first

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

std::string TypeName(const ElementType& type) {
  switch (type.letter) {
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'h':
      return "half";
    case 'b':
      return "bfloat16";
    case 'i':
      return fmt::format("{}-bit integers", 8 * type.bytes);
    default:
      return "";
  }
}

// Kinds of faults by what they do: wrong whatever comes of it, or wrong if it reaches a result.
bool IsFatal(const std::string& kind) {
  return kind == "barrier-divergence" || kind == "out-of-bounds" || kind == "shared-out-of-range" || kind == "crash" ||
         kind == "livelock" || kind == "copy-out-of-bounds" || kind == "shared-race";
}

using DifferenceKey = std::tuple<std::string, int, int>;
DifferenceKey KeyOf(const RunDifference& difference) {
  return {difference.launch.kernel, difference.at_copy ? 1 : 0, difference.buffer};
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
      places_[i] = std::make_unique<CodePlaces>(programs_[i].path, programs_[i].folder);
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

    PORTOLAN_RETURN_IF_ERROR(AddDifferences(in_step, 0, 0, unstable, "difference"));
    if (!disagrees_) PORTOLAN_RETURN_IF_ERROR(AddDifferences(shuffled, kSeed, kOtherFill, unstable, "order"));
    AddEnds(in_step, own_output_differs, "");
    if (!disagrees_) AddEnds(shuffled, own_output_differs, " with the port's waves in another order");
    if (!unstable.empty()) {
      VerifyFinding finding;
      finding.kind = "order-dependent";
      finding.level = VerifyLevel::kWarning;
      const RunDifference& first = own.differences.front();
      finding.place = {RelativeFile(0, first.launch.file), first.launch.line};
      finding.in_port = false;
      finding.kernel = first.launch.kernel;
      finding.message = fmt::format(
          "the original's own results depend on the order of its waves or on memory that nobody wrote: {} buffer(s), "
          "left out of the comparison",
          unstable.size());
      report_.findings.push_back(finding);
    }
    AddFaults(in_step, shuffled);
    AddLimits(in_step);

    const bool errors = std::any_of(report_.findings.begin(), report_.findings.end(),
                                    [](const VerifyFinding& f) { return f.level == VerifyLevel::kError; });
    if (errors) {
      report_.verdict = VerifyVerdict::kDisagrees;
    } else if (!report_.ended) {
      NotRun(EndText(in_step));
    } else if (report_.launches == 0 && report_.compared_copies == 0) {  // library calls are no launches
      std::vector<std::string> lines = Split(in_step.side[0].output.substr(0, 400), '\n');
      NotRun(fmt::format("'{}' launched no kernel (exit code {})", report_.command, in_step.side[0].code), lines);
    } else {
      report_.verdict = VerifyVerdict::kAgrees;
    }
    return {};
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

  std::string RelativeFile(size_t program, const std::string& file) const {
    const std::string& folder = programs_[program].folder;
    return file.rfind(folder + "/", 0) == 0 ? file.substr(folder.size() + 1) : file;
  }

  std::string WriterText(size_t program, const RunFault& writer) {
    if (writer.kind.empty()) return "nobody wrote it in this launch";
    const int wave = report_.wave_sizes[program];
    return fmt::format("written at {} by block {}, work-item {} (lane {} of wave {})",
                       PlaceText(places_[program]->Find(writer.place)), writer.block, writer.work_item,
                       writer.work_item % wave, writer.work_item / wave);
  }

  Status AddDifferences(const PairResult& pair, uint64_t seed, uint8_t fill, const std::set<DifferenceKey>& unstable,
                        const char* kind) {
    std::vector<const RunDifference*> real;
    for (const RunDifference& difference : pair.differences) {
      if (unstable.count(KeyOf(difference)) == 0) real.push_back(&difference);
    }
    if (real.empty()) return {};
    disagrees_ = true;
    const RunDifference& first = *real.front();
    VerifyFinding finding;
    finding.kind = kind;
    finding.kernel = first.launch.kernel;
    finding.place = {RelativeFile(0, first.launch.file), first.launch.line};
    finding.in_port = false;
    finding.message = first.at_copy ? fmt::format("results copied to the host differ, after launch {} ({})",
                                                  first.launch.number, first.launch.kernel)
                                    : fmt::format("launch {} of the program, of {}, leaves other results in the port",
                                                  first.launch.number, first.launch.kernel);
    if (seed != 0) finding.message += " when its waves run in another order or unwritten memory holds something else";
    finding.details.push_back(DifferenceText(first));
    if (!first.at_copy) {
      PORTOLAN_ASSIGN_OR_RETURN(const PairResult watched, RunBoth(SideOf(0, 0, 0), SideOf(1, seed, fill),
                                                                  {first.launch.number, first.element_offset}));
      for (size_t i = 0; i < 2; ++i) {
        finding.details.push_back(
            fmt::format("{}: {}", i == 0 ? "original" : "port", WriterText(i, watched.side[i].writer)));
      }
      // Where the port wrote it; else where it should have.
      for (const size_t side : {size_t{1}, size_t{0}}) {
        const SourcePlace place = places_[side]->Find(watched.side[side].writer.place);
        if (place.file.empty()) continue;
        finding.place = place;
        finding.in_port = side == 1;
        break;
      }
      finding.details.push_back(
          fmt::format("launched at {}:{}", RelativeFile(0, first.launch.file), first.launch.line));
    }
    for (size_t i = 1; i < real.size() && i <= kMostDetails; ++i) {
      finding.details.push_back(fmt::format("also after launch {} of {}: {}", real[i]->launch.number,
                                            real[i]->launch.kernel, DifferenceText(*real[i])));
    }
    report_.findings.push_back(finding);
    return {};
  }

  static std::string DifferenceText(const RunDifference& difference) {
    const std::string type = TypeName(difference.type);
    return fmt::format("buffer {} ({} bytes{}), element {}: {} expected, {} seen; {} elements differ{}",
                       difference.buffer, difference.buffer_bytes, type.empty() ? "" : ", " + type,
                       difference.what.first, difference.what.expected, difference.what.seen, difference.what.elements,
                       difference.what.permuted ? " (the same ones in another order)" : "");
  }

  void AddEnds(const PairResult& pair, bool own_output_differs, const char* suffix) {
    VerifyFinding finding;
    finding.kind = "outcome";
    const SideResult& a = pair.side[0];
    const SideResult& b = pair.side[1];
    if (Ended(a) && b.end == SideResult::End::kSignalled) {
      finding.message = fmt::format("the port ends with signal {}, the original does not{}", b.code, suffix);
    } else if (Ended(a) && Ended(b) && b.why.rfind("a spin loop", 0) == 0) {
      finding.message = fmt::format("the port does not end: {}{}", b.why, suffix);
    } else if (Ended(a) && Ended(b) && a.code != b.code && !own_output_differs) {
      finding.message = fmt::format("exit code {} expected, {} seen{}", a.code, b.code, suffix);
    } else if (Ended(a) && Ended(b) && a.output != b.output && !own_output_differs) {
      finding.message = fmt::format("the port prints something else{}", suffix);
      const std::vector<std::string> expected = Split(a.output, '\n');
      const std::vector<std::string> seen = Split(b.output, '\n');
      for (size_t i = 0; i < std::max(expected.size(), seen.size()); ++i) {
        const std::string left = i < expected.size() ? expected[i] : "";
        const std::string right = i < seen.size() ? seen[i] : "";
        if (left == right) continue;
        finding.details.push_back(fmt::format("line {} expected: {}", i + 1, left.substr(0, 200)));
        finding.details.push_back(fmt::format("line {} seen: {}", i + 1, right.substr(0, 200)));
        break;
      }
    } else if (!pair.parted.empty() && !own_output_differs) {
      finding.message = fmt::format("the programs part: {}{}", pair.parted, suffix);
    } else {
      return;
    }
    disagrees_ = true;
    report_.findings.push_back(finding);
  }

  // Faults of the port; those that the original has at the same line as well are the program's own.
  void AddFaults(const PairResult& in_step, const PairResult& shuffled) {
    std::set<std::pair<std::string, std::string>> told;
    for (const PairResult* pair : {&in_step, &shuffled}) {
      for (size_t i = 0; i < 2; ++i) {
        for (const RunFault& fault : pair->side[i].faults) {
          places_[i]->Want(fault.place);
          places_[i]->Want(fault.other);
        }
      }
    }
    for (const PairResult* pair : {&in_step, &shuffled}) {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        for (const RunFault& fault : pair->side[i].faults) {
          VerifyFinding finding;
          finding.kind = fault.kind;
          finding.place = places_[i]->Find(fault.place);
          finding.in_port = i == 1;
          finding.kernel = fault.kernel;
          const SourcePlace other = places_[i]->Find(fault.other);
          // Two copies that the compiler made of one barrier.
          if (fault.kind == "barrier-divergence" && other == finding.place) continue;
          if (!told.insert({fault.kind, PlaceText(finding.place)}).second) continue;
          finding.level = IsFatal(fault.kind) ? VerifyLevel::kError : VerifyLevel::kWarning;
          finding.message = fault.detail;
          if (fault.work_item >= 0) {
            finding.message = fmt::format("block {}, work-item {}: {}", fault.block, fault.work_item, fault.detail);
          }
          if (!other.file.empty()) finding.details.push_back("the other place: " + PlaceText(other));
          finding.details.push_back(i == 0 ? "in the original, 32 lanes"
                                           : fmt::format("in the port, {} lanes", report_.wave_sizes[1]));
          report_.findings.push_back(finding);
        }
      }
    }
  }

  void AddLimits(const PairResult& pair) {
    std::set<std::string> told;
    for (const LaunchSize& shared : pair.side[1].shared) {
      if (shared.size <= target_.shared_memory_bytes || !told.insert(shared.launch.kernel).second) continue;
      VerifyFinding finding;
      finding.kind = "shared-memory";
      finding.place = {RelativeFile(1, shared.launch.file), shared.launch.line};
      finding.kernel = shared.launch.kernel;
      finding.message = fmt::format("a block of {} has {} bytes of shared memory, {} gives {}", shared.launch.kernel,
                                    shared.size, target_.gfx, target_.shared_memory_bytes);
      report_.findings.push_back(finding);
    }
    for (const LaunchSize& grid : pair.side[1].large_grids) {
      VerifyFinding finding;
      finding.kind = "grid-limit";
      finding.place = {RelativeFile(1, grid.launch.file), grid.launch.line};
      finding.kernel = grid.launch.kernel;
      finding.message =
          fmt::format("{} work-items in a row of the grid; AMD's hardware counts to 4294967295", grid.size);
      report_.findings.push_back(finding);
    }
  }

  VerifyOptions options_;
  const PortTarget& target_;
  std::unique_ptr<TemporaryFolder> temporary_;
  std::string work_;
  std::vector<std::string> arguments_;
  HostProgram programs_[2];
  std::unique_ptr<CodePlaces> places_[2];
  bool disagrees_ = false;
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> Verify(const VerifyOptions& options, const PortTarget& target) {
  return Verifier(options, target).Run();
}

const char* VerifyVerdictName(VerifyVerdict verdict) {
  switch (verdict) {
    case VerifyVerdict::kAgrees:
      return "agrees";
    case VerifyVerdict::kDisagrees:
      return "disagrees";
    case VerifyVerdict::kNotRun:
      return "could not run";
  }
  return "unknown";
}

nlohmann::ordered_json VerifyReportAsJson(const VerifyReport& report, const PortTarget& target) {
  nlohmann::ordered_json json;
  json["target"] = target.gfx;
  json["verdict"] = VerifyVerdictName(report.verdict);
  if (!report.why.empty()) json["why"] = report.why;
  if (!report.why_details.empty()) json["why_details"] = report.why_details;
  json["command"] = report.command;
  json["original_lanes"] = report.wave_sizes[0];
  json["port_lanes"] = report.wave_sizes[1];
  json["launches"] = report.launches;
  json["compared_launches"] = report.compared_launches;
  json["compared_copies"] = report.compared_copies;
  json["ended"] = report.ended;
  json["largest_relative_difference"] = report.largest_relative;
  json["build_seconds"] = {report.build_seconds[0], report.build_seconds[1]};
  json["run_seconds"] = report.run_seconds;
  json["findings"] = nlohmann::ordered_json::array();
  for (const VerifyFinding& finding : report.findings) {
    nlohmann::ordered_json entry;
    entry["kind"] = finding.kind;
    entry["level"] = finding.level == VerifyLevel::kError ? "error" : "warning";
    entry["file"] = finding.place.file;
    entry["line"] = finding.place.line;
    entry["in"] = finding.in_port ? "port" : "original";
    entry["kernel"] = finding.kernel;
    entry["message"] = finding.message;
    entry["details"] = finding.details;
    json["findings"].push_back(entry);
  }
  return json;
}

}  // namespace portolan
