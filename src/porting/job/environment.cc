// Environment variables of CUDA and its libraries that ROCm does not read, or reads with another meaning. Looked up
// (2026-12-01): CUDA_VISIBLE_DEVICES in HIP's list of environment variables (ROCm 6.4 and 7.1 name it beside
// HIP_VISIBLE_DEVICES, those of 10.x no more; ROCR_VISIBLE_DEVICES acts first), CUDA_PATH in hipcc's (NVIDIA platforms
// alone), HIPBLASLT_ALLOW_TF32 in aten/src/ATen/Context.cpp (ROCm/pytorch#1838). The others not entry by entry; what to
// check against: HIP's and RCCL's lists, PyTorch's HIP notes.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "porting/job/rules.h"

namespace portolan {
namespace {

struct Variable {
  std::string_view name;
  FindingLevel level;
  const char* why;
  const char* action;  // {} is the target's gfx name
};

constexpr FindingLevel kNote = FindingLevel::kNote;
constexpr FindingLevel kWarning = FindingLevel::kWarning;

constexpr std::array<Variable, 18> kVariables = {{
    {"CUDA_LAUNCH_BLOCKING", kWarning, "HIP's runtime does not read it", "AMD_SERIALIZE_KERNEL=3"},
    {"CUDA_VISIBLE_DEVICES", kNote,
     "HIP reads it too, after ROCR_VISIBLE_DEVICES; the lists of ROCm 10 name it no more", "HIP_VISIBLE_DEVICES"},
    {"CUDA_DEVICE_ORDER", kNote, "HIP does not read it: devices come in the order of their PCI addresses",
     "HIP_VISIBLE_DEVICES chooses and orders"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", kWarning, "HIP does not read it; its hardware queues are 4 a process",
     "GPU_MAX_HW_QUEUES"},
    {"CUDA_HOME", kWarning, "there is no CUDA toolkit", "ROCM_HOME, which PyTorch's extension builder reads"},
    {"CUDA_PATH", kWarning, "there is no CUDA toolkit", "ROCM_PATH"},
    {"CUDA_CACHE_PATH", kNote, "HIP does not read it", "take it away"},
    {"TORCH_CUDA_ARCH_LIST", kWarning, "PyTorch for ROCm takes its architectures from PYTORCH_ROCM_ARCH",
     "PYTORCH_ROCM_ARCH={}"},
    {"NVIDIA_VISIBLE_DEVICES", kWarning, "only NVIDIA's container runtime reads it",
     "give the container /dev/kfd and /dev/dri; HIP_VISIBLE_DEVICES chooses"},
    {"NVIDIA_DRIVER_CAPABILITIES", kWarning, "only NVIDIA's container runtime reads it",
     "give the container /dev/kfd and /dev/dri"},
    {"NVIDIA_TF32_OVERRIDE", kWarning, "ROCm's libraries do not read it", "HIPBLASLT_ALLOW_TF32 on chips with XF32"},
    {"NCCL_NVLS_ENABLE", kNote, "RCCL has no NVLink SHARP", "take it away"},
    {"NCCL_NVLS_NCHANNELS", kNote, "RCCL has no NVLink SHARP", "take it away"},
    {"NCCL_NVB_DISABLE", kNote, "it speaks of NVLink; the links here are xGMI", "take it away"},
    {"NCCL_MIN_NCHANNELS", kNote, "a channel count chosen for NVIDIA's links; RCCL chooses its own for xGMI",
     "leave it out and measure with rccl-tests"},
    {"NCCL_MAX_NCHANNELS", kNote, "a channel count chosen for NVIDIA's links; RCCL chooses its own for xGMI",
     "leave it out and measure with rccl-tests"},
    {"NCCL_TOPO_FILE", kWarning, "it describes the links of an NVIDIA machine", "leave it out: RCCL finds them"},
    {"NCCL_GRAPH_FILE", kWarning, "it describes the rings of an NVIDIA machine", "leave it out: RCCL finds them"},
}};

bool IsWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void Report(const JobInput& input, const Variable& variable, size_t offset, JobOutput* output) {
  output->Find(input.file, offset, variable.level, "job-environment",
               fmt::format("{}: {}", variable.name, variable.why),
               fmt::format(fmt::runtime(variable.action), input.target.gfx));
}

const Variable* FindVariable(std::string_view name) {
  const auto found = std::find_if(kVariables.begin(), kVariables.end(),
                                  [&](const Variable& variable) { return variable.name == name; });
  return found == kVariables.end() ? nullptr : &*found;
}

// os.environ["X"], os.environ.get("X"), os.getenv("X"), setdefault("X", ...), env={"X": ...}, Popen(env=dict(X=...)).
void ApplyToPython(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  for (size_t i = 1; i < file.tokens().size(); ++i) {
    if (!file.IsString(i)) continue;
    const Variable* variable = FindVariable(PythonStringContent(file.Text(i)));
    if (variable == nullptr) continue;
    const std::string_view before = file.Text(i - 1);
    const std::string_view after = file.Text(i + 1);
    const std::string_view function = i >= 2 ? file.Text(i - 2) : std::string_view();
    const bool index = before == "[" && after == "]" && (function == "environ" || function == "env");
    const bool call = before == "(" && (function == "get" || function == "getenv" || function == "setdefault" ||
                                        function == "pop" || function == "putenv" || function == "setenv");
    const bool key = (before == "{" || before == ",") && after == ":";
    if (index || call || key) Report(input, *variable, file.tokens()[i].begin, output);
  }
}

}  // namespace

void ApplyEnvironment(const JobInput& input, JobOutput* output) {
  if (input.file.is_python()) {
    ApplyToPython(input, output);
    return;
  }
  if (input.file.kind() == JobFileKind::kRequirements) return;
  for (const JobLine& line : input.file.lines()) {
    for (size_t at = 0; at < line.text.size();) {
      if (!IsWordByte(line.text[at])) {
        ++at;
        continue;
      }
      const size_t begin = at;
      while (at < line.text.size() && IsWordByte(line.text[at])) ++at;
      const Variable* variable = FindVariable(line.text.substr(begin, at - begin));
      if (variable == nullptr) continue;
      // Set: X=, X: in YAML, ENV X value, "- X" or "name: X" of a list of variables. What only reads it follows from
      // that.
      const char next = at < line.text.size() ? line.text[at] : '\0';
      const std::string_view before = line.text.substr(0, begin);
      const bool yaml = input.file.kind() == JobFileKind::kYaml;
      const bool named = yaml && next != '/' && before.find("name:") != std::string_view::npos;
      const bool container =
          input.file.kind() == JobFileKind::kContainer && next == ' ' && (before == "ENV " || before == "ARG ");
      if ((begin == 0 || line.text[begin - 1] != '$') && (next == '=' || (yaml && next == ':') || named || container)) {
        Report(input, *variable, line.begin + begin, output);
      }
    }
  }
}

}  // namespace portolan
