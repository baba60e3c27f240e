// Python packages whose wheels hold CUDA code, and indexes of such wheels.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "porting/job/rules.h"

namespace portolan {
namespace {

struct Package {
  std::string_view name;  // in lower case with - for _; ends with * for any end
  FindingLevel level;
  const char* action;
};

constexpr FindingLevel kWarning = FindingLevel::kWarning;
constexpr FindingLevel kError = FindingLevel::kError;

constexpr std::array<Package, 21> kPackages = {{
    {"nvidia-ml-py", kError, "amdsmi has another interface"},
    {"nvidia-dali-*", kError, "rocAL, or decode on the host"},
    {"nvidia-*", kError, "take it away: ROCm's libraries come with PyTorch's ROCm wheel or the system"},
    {"pynvml", kError, "amdsmi has another interface"},
    {"cupy-cuda*", kError, "CuPy built for ROCm"},
    {"tensorrt*", kError, "MIGraphX, or torch.compile"},
    {"cudf-cu*", kError, "pandas, polars or hipDF"},
    {"cuml-cu*", kError, "scikit-learn"},
    {"cugraph-cu*", kError, "networkx"},
    {"rmm-cu*", kError, "take it away"},
    {"pylibraft-cu*", kError, "take it away"},
    {"jax-cuda*", kError, "jax with the jax-rocm plugins"},
    {"faiss-gpu*", kError, "FAISS built for ROCm"},
    {"transformer-engine*", kWarning, "ROCm/TransformerEngine, built for the target"},
    {"flash-attn", kWarning, "ROCm/flash-attention, built for the target, or scaled_dot_product_attention"},
    {"fbgemm-gpu", kWarning, "the wheel of PyTorch's ROCm index, or a build with the target's name"},
    {"fbgemm-gpu-nightly", kWarning, "the wheel of PyTorch's ROCm index, or a build with the target's name"},
    {"xformers", kWarning, "the wheel of PyTorch's ROCm index"},
    {"triton", kWarning, "the Triton that PyTorch's ROCm wheel asks for; another version does not fit it"},
    {"apex", kWarning, "ROCm/apex, built for the target"},
    {"onnxruntime-gpu", kError, "onnxruntime-rocm, or its MIGraphX build"},
}};

bool Matches(std::string_view pattern, std::string_view name) {
  if (!pattern.empty() && pattern.back() == '*') {
    pattern.remove_suffix(1);
    return name.substr(0, pattern.size()) == pattern;
  }
  return name == pattern;
}

// Characters of a name, extras, version and local version.
bool IsSpecByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_.[]=<>!~+,*").find(c) != std::string_view::npos;
}

void JudgeSpec(const JobInput& input, std::string_view spec, size_t offset, JobOutput* output) {
  std::string name = LowerCase(spec.substr(0, spec.find_first_of("[=<>!~+;,*")));
  for (char& c : name) c = c == '_' ? '-' : c;
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  const size_t local = spec.find("+cu");
  if (local != std::string_view::npos && local + 3 < spec.size() &&
      std::isdigit(static_cast<unsigned char>(spec[local + 3])) != 0) {
    output->Find(input.file, offset, kError, "wheel-pin", fmt::format("'{}' is a build for CUDA", spec),
                 fmt::format("a build for ROCm {}.{}, from PyTorch's index for it", input.target.rocm / 100,
                             input.target.rocm % 100));
    return;
  }
  for (const Package& package : kPackages) {
    if (!Matches(package.name, name)) continue;
    output->Find(input.file, offset, package.level, "wheel-pin",
                 fmt::format("the wheels of '{}' hold code for CUDA", name), package.action);
    return;
  }
}

// .../whl/cu121 and the like.
void JudgeIndex(const JobInput& input, const JobLine& line, JobOutput* output) {
  const size_t at = line.text.find("download.pytorch.org/whl/");
  if (at == std::string_view::npos) return;
  const size_t cu = line.text.find("/cu", at);
  if (cu == std::string_view::npos || cu + 3 >= line.text.size() ||
      std::isdigit(static_cast<unsigned char>(line.text[cu + 3])) == 0) {
    return;
  }
  output->Find(input.file, line.begin + at, kError, "wheel-pin", "an index of wheels for CUDA",
               fmt::format("its rocm{}.{}", input.target.rocm / 100, input.target.rocm % 100));
}

// What the keys of a pyproject.toml's [project] say of itself, as against those that hold requirements.
bool SpeaksOfItself(std::string_view key) {
  for (const char* own : {"name", "description", "keywords", "classifiers", "authors", "maintainers", "license",
                          "readme", "version", "packages", "py-modules", "build-backend"}) {
    if (key == own) return true;
  }
  return false;
}

}  // namespace

void ApplyWheelPins(const JobInput& input, JobOutput* output) {
  const JobFile& file = input.file;
  bool continued = false;  // a pip command that goes on in the next line
  bool own_list = false;   // in a list that a pyproject.toml's own description began
  for (const JobLine& line : file.lines()) {
    JudgeIndex(input, line, output);
    size_t at = 0;
    bool pins = file.kind() == JobFileKind::kRequirements;
    const bool toml = pins && file.path().size() > 5 && file.path().substr(file.path().size() - 5) == ".toml";
    if (!pins) {
      const size_t pip = line.text.find("pip install");
      const size_t pip3 = line.text.find("pip3 install");
      if (pip != std::string_view::npos) at = pip + 11;
      if (pip3 != std::string_view::npos) at = pip3 + 12;
      pins = at > 0 || continued;
      continued = pins && !line.text.empty() && line.text.back() == '\\';
    }
    if (!pins) continue;
    if (toml) {
      const size_t equals = line.text.find('=');
      size_t key_end = std::min(equals, line.text.size());
      while (key_end > 0 && line.text[key_end - 1] == ' ') --key_end;
      const std::string_view key = line.text.substr(0, key_end);
      const bool list_ends = line.text.find(']') != std::string_view::npos;
      if (own_list) {
        own_list = !list_ends;
        continue;
      }
      if (equals != std::string_view::npos && SpeaksOfItself(key)) {
        own_list = line.text.find('[', equals) != std::string_view::npos && !list_ends;
        continue;
      }
    }
    bool option = false;
    while (at < line.text.size()) {
      if (!IsSpecByte(line.text[at])) {
        // Another command of the shell ends the list.
        if (file.kind() != JobFileKind::kRequirements &&
            (line.text[at] == '&' || line.text[at] == ';' || line.text[at] == '|'))
          break;
        ++at;
        continue;
      }
      const size_t begin = at;
      while (at < line.text.size() && IsSpecByte(line.text[at])) ++at;
      const std::string_view word = line.text.substr(begin, at - begin);
      const bool quoted = begin > 0 && (line.text[begin - 1] == '"' || line.text[begin - 1] == '\'');
      const bool path = (begin > 0 && (line.text[begin - 1] == '/' || line.text[begin - 1] == ':')) ||
                        (at < line.text.size() && (line.text[at] == '/' || line.text[at] == ':'));
      const bool flag = word[0] == '-';
      if (!flag && !option && !path && (!toml || quoted)) JudgeSpec(input, word, line.begin + begin, output);
      // -r file, -e path, --index-url URL: the next word is no package.
      option = flag && (word == "-r" || word == "-e" || word == "-c" || word == "-f" || word == "-i" ||
                        word.find("index") != std::string_view::npos || word == "--find-links");
      if (file.kind() == JobFileKind::kRequirements && !toml && !flag && !path && word != "-") break;  // one a line
    }
  }
}

}  // namespace portolan
