// Questions to PyTorch whose answer is another one on ROCm, and modules of NVIDIA. device="cuda", torch.cuda and the
// back end "nccl" are ROCm's names too.

#include <fmt/format.h>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

// Whether the statement of token `i` compares, indexes or unpacks what it computes.
bool IsCompared(const JobFile& file, size_t i) {
  for (size_t at = i; at < file.tokens().size() && at < i + 40; ++at) {
    if (file.tokens()[at].kind == PythonTokenKind::kNewline) return false;
    const std::string_view text = file.Text(at);
    if (text == "<" || text == ">" || (text == "=" && file.Text(at + 1) == "=") || text == "in") return true;
  }
  return false;
}

// torch.version.cuda as a truth is how a CUDA build is told from a ROCm one.
bool IsTruth(const JobFile& file, size_t begin, size_t end) {
  const std::string_view before = begin > 0 ? file.Text(begin - 1) : std::string_view();
  const std::string_view after = file.Text(end);
  return before == "if" || before == "not" || before == "and" || before == "or" || before == "bool" || after == "is" ||
         (after == "!" && file.Reads(end, {"!", "=", "None"})) || after == "and" || after == "or" || after == ":";
}

// Whether the function before token `i` has asked which build this is: `if torch.version.hip: return` and the like.
bool KnowsTheBuild(const JobFile& file, size_t i) {
  constexpr size_t kLongest = 150;  // tokens
  for (size_t at = i; at > 0 && i - at < kLongest; --at) {
    if (file.Text(at) == "def") return false;
    const std::string_view before = file.Text(at - 1);
    const bool asks = before == "if" || before == "elif" || before == "not";
    const bool joined = asks || before == "(" || before == "or" || before == "and";
    if (joined && file.Reads(at, {"torch", ".", "version", ".", "hip"})) return true;
    if (asks && at != i && file.Reads(at, {"torch", ".", "version", ".", "cuda"})) return true;
  }
  return false;
}

// The major version that get_device_capability() at token `i` is compared with, as in >= (8, 0) and [0] < 9; -1:
// unknown.
long long ComparedMajor(const JobFile& file, size_t i) {
  constexpr size_t kLongest = 8;  // tokens of the call's arguments
  size_t at = i + 2;
  while (at < i + kLongest && file.Text(at) != ")") ++at;
  ++at;
  if (file.Text(at) == "[" && file.Text(at + 1) == "0" && file.Text(at + 2) == "]") at += 3;
  const std::string_view sign = file.Text(at).substr(0, 1);
  if (sign != ">" && sign != "<" && sign != "=" && sign != "!") return -1;
  while (std::string_view("><=!(").find(file.Text(at).substr(0, 1)) != std::string_view::npos &&
         !file.Text(at).empty()) {
    ++at;
  }
  long long major = 0;
  return ParseInt64(std::string(file.Text(at)), &major) ? major : -1;
}

}  // namespace

void ApplyTorchDevice(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  const PortTarget& target = input.target;
  // gfx942 is (9, 4), gfx950 is (9, 5).
  const std::string capability =
      target.gfx.size() == 6 ? fmt::format("({}, {})", target.gfx[3], target.gfx[4]) : std::string("(9, x)");
  for (size_t i = 0; i < file.tokens().size(); ++i) {
    const uint32_t place = file.tokens()[i].begin;
    const auto find = [&](FindingLevel level, std::string message, std::string action) {
      output->Find(file, place, level, "torch-device", std::move(message), std::move(action));
    };
    if (file.Reads(i, {"torch", ".", "version", ".", "cuda"})) {
      if (IsTruth(file, i, i + 5) || file.Text(i + 5) == ")" || KnowsTheBuild(file, i)) continue;
      find(FindingLevel::kWarning, "torch.version.cuda is None on ROCm", "torch.version.hip");
    } else if (file.Text(i) == "get_device_capability" && file.Text(i + 1) == "(" && IsCompared(file, i)) {
      // What needs 8 or less (bfloat16) is there; what needs 10 is not asked for by chips that say 9.
      const long long major = ComparedMajor(file, i);
      if (KnowsTheBuild(file, i) || (major != -1 && major != 9)) continue;
      find(FindingLevel::kWarning,
           fmt::format("get_device_capability() says {} for {}: a test for Hopper holds there", capability, target.gfx),
           "ask torch.version.hip first, and get_device_properties().gcnArchName for the chip");
    } else if ((file.Text(i) == "import" || file.Text(i) == "from") &&
               (file.Text(i + 1) == "pynvml" || file.Text(i + 1) == "tensorrt")) {
      find(FindingLevel::kError, fmt::format("'{}' needs NVIDIA's driver", file.Text(i + 1)),
           file.Text(i + 1) == "pynvml" ? "amdsmi has another interface" : "torch.compile, or MIGraphX");
    } else if (file.IsString(i) && PythonStringContent(file.Text(i)).substr(0, 10) == "nvidia-smi") {
      find(FindingLevel::kWarning, "there is no nvidia-smi", "amd-smi, with other options");
    } else if (target.gfx == "gfx942" && file.Reads(i, {"torch", "."}) &&
               (file.Text(i + 2) == "float8_e4m3fn" || file.Text(i + 2) == "float8_e5m2")) {
      find(FindingLevel::kError,
           fmt::format("the matrix units of gfx942 take the FNUZ formats, not {}", file.Text(i + 2)),
           fmt::format("torch.{}uz there, whose largest value is half (e4m3: 240)",
                       file.Text(i + 2) == "float8_e5m2" ? "float8_e5m2fn" : "float8_e4m3fn"));
    }
  }
}

}  // namespace portolan
