#include "porting/job/job_rule.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// A comment begins with # at the start of a line or behind a blank, outside quotes.
std::string_view WithoutComment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

}  // namespace

JobFileKind JobFileKindOf(const std::string& path) {
  const std::string name = LowerCase(path.substr(path.rfind('/') + 1));
  if (name == "setup.py") return JobFileKind::kSetup;
  if (EndsWith(name, ".py")) return JobFileKind::kPython;
  for (const char* shell : {".sh", ".bash", ".slurm", ".sbatch", ".env"}) {
    if (EndsWith(name, shell)) return JobFileKind::kShell;
  }
  if (StartsWith(name, "dockerfile") || StartsWith(name, "containerfile") || EndsWith(name, ".dockerfile")) {
    return JobFileKind::kContainer;
  }
  const bool pins = StartsWith(name, "requirements") || StartsWith(name, "constraints");
  if ((pins && EndsWith(name, ".txt")) || name == "pyproject.toml" || name == "environment.yml" ||
      name == "environment.yaml") {
    return JobFileKind::kRequirements;
  }
  if (EndsWith(name, ".yml") || EndsWith(name, ".yaml")) return JobFileKind::kYaml;
  return JobFileKind::kNone;
}

JobFile::JobFile(std::string path, std::string text, JobFileKind kind)
    : path_(std::move(path)), text_(std::move(text)), kind_(kind) {
  if (is_python()) {
    tokens_ = LexPython(text_);
    return;
  }
  const std::string_view whole = text_;
  for (size_t at = 0; at < whole.size();) {
    const size_t end = std::min(whole.find('\n', at), whole.size());
    std::string_view line = whole.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines_.push_back({WithoutComment(line), static_cast<uint32_t>(at)});
    at = end + 1;
  }
}

bool JobFile::Reads(size_t token, const std::vector<std::string_view>& words) const {
  for (size_t i = 0; i < words.size(); ++i) {
    if (Text(token + i) != words[i]) return false;
  }
  return true;
}

Position JobFile::PositionOf(size_t offset) const {
  const std::string_view before = std::string_view(text_).substr(0, offset);
  const size_t line = before.rfind('\n');
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(line == std::string_view::npos ? offset : offset - line - 1) + 1};
}

void JobOutput::Find(const JobFile& file, size_t offset, FindingLevel level, std::string_view kind, std::string message,
                     std::string action) {
  findings.push_back(
      {file.path(), file.PositionOf(offset), level, std::string(kind), std::move(message), std::move(action)});
}

const std::vector<JobRule>& AllJobRules() {
  static const auto* rules = new std::vector<JobRule>{
      {"tf32", "TF32 switches, on a chip with or without TF32", ApplyTf32},
      {"job-environment", "Environment variables that only CUDA's libraries read", ApplyEnvironment},
      {"wheel-pin", "Python packages that hold CUDA code", ApplyWheelPins},
      {"container", "Base images and device options of NVIDIA's containers", ApplyContainers},
      {"triton", "Triton options and functions that depend on the wave or on NVIDIA's hardware", ApplyTriton},
      {"torch-device", "Questions to PyTorch whose answer differs on ROCm", ApplyTorchDevice},
      {"extension-flags", "nvcc's flags in setup.py", ApplyExtensionFlags},
  };
  return *rules;
}

AuditedJobFile AuditJobFile(const JobFile& file, const PortTarget& target) {
  JobOutput output;
  for (const JobRule& rule : AllJobRules()) rule.apply({file, target}, &output);
  std::stable_sort(output.findings.begin(), output.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.position.line, a.position.column) < std::tie(b.position.line, b.position.column);
  });
  return {ApplyEdits(file.text(), std::move(output.edits)), std::move(output.findings)};
}

}  // namespace portolan
