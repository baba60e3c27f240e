#include "porting/verify/verify_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"

namespace portolan {
namespace {

constexpr size_t kMostDetails = 6;  // kernels whose differences are told besides the first

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

bool Ended(const SideResult& side) { return side.end == SideResult::End::kExited; }

std::string DifferenceText(const RunDifference& difference) {
  const std::string type = TypeName(difference.type);
  return fmt::format("buffer {} ({} bytes{}), element {}: {} expected, {} seen; {} elements differ{}",
                     difference.buffer, difference.buffer_bytes, type.empty() ? "" : ", " + type, difference.what.first,
                     difference.what.expected, difference.what.seen, difference.what.elements,
                     difference.what.permuted ? " (the same ones in another order)" : "");
}

}  // namespace

DifferenceKey KeyOf(const RunDifference& difference) {
  return {difference.launch.kernel, difference.at_copy ? 1 : 0, difference.buffer};
}

std::string FindingWriter::RelativeFile(size_t program, const std::string& file) const {
  const std::string& folder = programs_[program].folder;
  return file.rfind(folder + "/", 0) == 0 ? file.substr(folder.size() + 1) : file;
}

std::string FindingWriter::WriterText(size_t program, const RunFault& writer) {
  if (writer.kind.empty()) return "nobody wrote it in this launch";
  const int wave = programs_[program].wave_size;
  return fmt::format("written at {} by block {}, work-item {} (lane {} of wave {})",
                     PlaceText(programs_[program].places->Find(writer.place)), writer.block, writer.work_item,
                     writer.work_item % wave, writer.work_item / wave);
}

void FindingWriter::AddDifferences(const std::vector<const RunDifference*>& differences, const PairResult* watched,
                                   const char* kind, const std::string& suffix) {
  const RunDifference& first = *differences.front();
  VerifyFinding finding;
  finding.kind = kind;
  finding.kernel = first.launch.kernel;
  finding.place = {RelativeFile(0, first.launch.file), first.launch.line};
  finding.in_port = false;
  finding.message = first.at_copy ? fmt::format("results copied to the host differ, after launch {} ({})",
                                                first.launch.number, first.launch.kernel)
                                  : fmt::format("launch {} of the program, of {}, leaves other results in the port",
                                                first.launch.number, first.launch.kernel);
  finding.message += suffix;
  finding.details.push_back(DifferenceText(first));
  if (watched != nullptr) {
    for (size_t i = 0; i < 2; ++i) {
      finding.details.push_back(
          fmt::format("{}: {}", i == 0 ? "original" : "port", WriterText(i, watched->side[i].writer)));
    }
    // Where the port wrote it; else where it should have.
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const SourcePlace place = programs_[side].places->Find(watched->side[side].writer.place);
      if (place.file.empty()) continue;
      finding.place = place;
      finding.in_port = side == 1;
      break;
    }
    finding.details.push_back(fmt::format("launched at {}:{}", RelativeFile(0, first.launch.file), first.launch.line));
  }
  std::set<std::string> told = {first.launch.kernel};
  for (const RunDifference* other : differences) {
    if (told.size() > kMostDetails || !told.insert(other->launch.kernel).second) continue;
    finding.details.push_back(fmt::format("also after launch {} of {}: {}", other->launch.number, other->launch.kernel,
                                          DifferenceText(*other)));
  }
  findings_->push_back(finding);
}

bool FindingWriter::AddOutcome(const PairResult& pair, bool own_output_differs, const std::string& suffix) {
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
    return false;
  }
  findings_->push_back(finding);
  return true;
}

void FindingWriter::AddOrderDependence(const RunDifference& first, size_t buffers) {
  VerifyFinding finding;
  finding.kind = "order-dependent";
  finding.level = VerifyLevel::kWarning;
  finding.place = {RelativeFile(0, first.launch.file), first.launch.line};
  finding.in_port = false;
  finding.kernel = first.launch.kernel;
  finding.message = fmt::format(
      "the original's own results depend on the order of its waves or on memory that nobody wrote: {} buffer(s), "
      "left out of the comparison",
      buffers);
  findings_->push_back(finding);
}

// Faults of the port; those that the original has at the same line as well are the program's own.
void FindingWriter::AddFaults(const PairResult& in_step, const PairResult& shuffled) {
  std::set<std::pair<std::string, std::string>> told;
  for (const PairResult* pair : {&in_step, &shuffled}) {
    for (size_t i = 0; i < 2; ++i) {
      for (const RunFault& fault : pair->side[i].faults) {
        programs_[i].places->Want(fault.place);
        programs_[i].places->Want(fault.other);
      }
    }
  }
  for (const PairResult* pair : {&in_step, &shuffled}) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      for (const RunFault& fault : pair->side[i].faults) {
        VerifyFinding finding;
        finding.kind = fault.kind;
        finding.place = programs_[i].places->Find(fault.place);
        finding.in_port = i == 1;
        finding.kernel = fault.kernel;
        const SourcePlace other = programs_[i].places->Find(fault.other);
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
                                         : fmt::format("in the port, {} lanes", programs_[1].wave_size));
        findings_->push_back(finding);
      }
    }
  }
}

void FindingWriter::AddLimits(const PairResult& pair) {
  std::set<std::string> told;
  for (const LaunchSize& shared : pair.side[1].shared) {
    if (shared.size <= target_.shared_memory_bytes || !told.insert(shared.launch.kernel).second) continue;
    VerifyFinding finding;
    finding.kind = "shared-memory";
    finding.place = {RelativeFile(1, shared.launch.file), shared.launch.line};
    finding.kernel = shared.launch.kernel;
    finding.message = fmt::format("a block of {} has {} bytes of shared memory, {} gives {}", shared.launch.kernel,
                                  shared.size, target_.gfx, target_.shared_memory_bytes);
    findings_->push_back(finding);
  }
  for (const LaunchSize& grid : pair.side[1].large_grids) {
    VerifyFinding finding;
    finding.kind = "grid-limit";
    finding.place = {RelativeFile(1, grid.launch.file), grid.launch.line};
    finding.kernel = grid.launch.kernel;
    finding.message = fmt::format("{} work-items in a row of the grid; AMD's hardware counts to 4294967295", grid.size);
    findings_->push_back(finding);
  }
}

}  // namespace portolan
