#include "porting/cmake_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "porting/build_words.h"
#include "porting/cmake_lexer.h"
#include "porting/cmake_names.h"
#include "porting/compile_flags.h"
#include "porting/source.h"

namespace portolan {
namespace {

template <size_t N>
const CMakeName* Find(const std::array<CMakeName, N>& pairs, std::string_view name) {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const CMakeName& pair) { return pair.cuda == name; });
  return found == pairs.end() ? nullptr : &*found;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// The package that exports an imported target: roc::hipblas is hipblas's, hip::host is hip's.
std::string PackageOf(std::string_view target) {
  const std::string_view name = target.substr(target.find("::") + 2);
  return name == "host" ? "hip" : std::string(name);
}

class Porter {
 public:
  Porter(const std::string& path, std::string_view text, const PortTarget& target)
      : source_(path, std::string(text)), text_(source_.text()), target_(target), commands_(LexCMake(text_)) {}

  PortedBuildFile Run() {
    PortedBuildFile result;
    if (!MentionsCuda() || BuildsHip()) {
      result.text = std::string(text_);
      return result;
    }
    for (const CMakeCommand& command : commands_) {
      if (command.name == "set" || command.name == "option" || command.name == "function" || command.name == "macro") {
        if (!command.arguments.empty()) own_.emplace(Text(command.arguments[0]));
      }
    }
    CollectPackages();
    CollectGiven();
    for (const CMakeCommand& command : commands_) Port(command);
    result.text = ApplyEdits(text_, std::move(edits_));
    result.findings = std::move(findings_);
    return result;
  }

 private:
  std::string_view Text(const CMakeArgument& argument) const {
    return text_.substr(argument.begin, argument.end - argument.begin);
  }
  std::string_view Bare(const CMakeArgument& argument) const {
    const std::string_view text = Text(argument);
    return argument.quoted && text.size() >= 2 && text[0] == '"' ? text.substr(1, text.size() - 2) : text;
  }

  bool MentionsCuda() const {
    const std::string lower = LowerCase(text_);
    return lower.find("cuda") != std::string::npos || lower.find(".cu") != std::string::npos ||
           lower.find("nccl") != std::string::npos;
  }

  // Whether the file has a HIP build of its own: nobody but its author can tell which branch is which.
  bool BuildsHip() const {
    return std::any_of(commands_.begin(), commands_.end(), [this](const CMakeCommand& command) {
      if (command.name == "hipify" || command.name == "hip_add_library") return true;  // PyTorch's, FindHIP's
      if (command.arguments.empty()) return false;
      const std::string first = LowerCase(Bare(command.arguments[0]));
      if (command.name == "find_package") return first == "hip" || first == "rocm";
      if (command.name != "project" && command.name != "enable_language") return false;
      return std::any_of(command.arguments.begin(), command.arguments.end(),
                         [this](const CMakeArgument& argument) { return Bare(argument) == "HIP"; });
    });
  }

  void Replace(const CMakeArgument& argument, std::string_view text) {
    edits_.push_back({argument.begin, argument.end, std::string(text)});
  }

  // Takes an argument away with the blanks before it.
  void Remove(const CMakeArgument& argument) {
    uint32_t begin = argument.begin;
    while (begin > 0 && (text_[begin - 1] == ' ' || text_[begin - 1] == '\t')) --begin;
    edits_.push_back({begin, argument.end, ""});
  }

  void Left(uint32_t offset, FindingLevel level, std::string message, std::string action) {
    findings_.push_back(
        {source_.path(), source_.PositionOf(offset), level, "build-file", std::move(message), std::move(action)});
  }

  // The packages of the imported targets that this file will link.
  void CollectPackages() {
    for (const CMakeCommand& command : commands_) {
      for (const CMakeArgument& argument : command.arguments) {
        const std::string_view text = Bare(argument);
        const CMakeName* pair = Find(kTargets, text);
        if (pair == nullptr) pair = Find(kLibraryVariables, text);
        if (pair != nullptr) packages_.insert(PackageOf(pair->hip));
      }
      if (command.name == "cuda_add_cublas_to_target") packages_.insert("hipblas");
    }
    packages_.erase("hip");
    packages_.erase("rccl");
  }

  // The sources that have LANGUAGE HIP already.
  void CollectGiven() {
    for (const CMakeCommand& command : commands_) {
      if (command.name != "set_source_files_properties") continue;
      const bool hip = std::any_of(command.arguments.begin(), command.arguments.end(),
                                   [this](const CMakeArgument& argument) { return Bare(argument) == "HIP"; });
      for (const CMakeArgument& argument : command.arguments) {
        if (hip) given_.emplace(Bare(argument));
      }
    }
  }

  void Port(const CMakeCommand& command) {
    const std::string& name = command.name;
    if (name == "cmake_minimum_required") {
      RaiseMinimum(command);
      return;
    }
    if (name == "project" || name == "enable_language" || name == "check_language") {
      for (const CMakeArgument& argument : command.arguments) {
        if (Bare(argument) == "CUDA" && &argument != (name == "project" ? command.arguments.data() : nullptr)) {
          Replace(argument, "HIP");
        }
      }
      return;
    }
    if (name == "find_package") {
      PortPackage(command);
      return;
    }
    if (const CMakeName* pair = Find(kCommands, name); pair != nullptr) {
      if (pair->hip.empty()) {
        const bool whole = command.arguments.size() == 1;
        if (whole) {
          edits_.push_back({command.name_begin, command.end,
                            fmt::format("target_link_libraries({} roc::hipblas)", Text(command.arguments[0]))});
          return;
        }
      } else {
        edits_.push_back({command.name_begin, command.name_end, std::string(pair->hip)});
      }
    } else if (StartsWith(name, "cuda_") &&
               own_.count(text_.substr(command.name_begin, command.name_end - command.name_begin)) == 0) {
      Left(command.name_begin, FindingLevel::kWarning, fmt::format("'{}' belongs to CUDA's CMake module", name),
           "write this step for HIP by hand");
      return;
    }
    PortArguments(command);
    GiveLanguage(command);
  }

  // CMake has the HIP language since 3.21.
  void RaiseMinimum(const CMakeCommand& command) {
    for (size_t i = 0; i + 1 < command.arguments.size(); ++i) {
      if (Bare(command.arguments[i]) != "VERSION") continue;
      const std::string_view whole = Text(command.arguments[i + 1]);
      const std::string_view lowest = whole.substr(0, whole.find("..."));
      const std::vector<std::string> parts = Split(lowest, '.');
      long long major = 0;
      long long minor = 0;
      if (parts.size() < 2 || !ParseInt64(parts[0], &major) || !ParseInt64(parts[1], &minor)) continue;
      if (major < 3 || (major == 3 && minor < 21)) {
        edits_.push_back({command.arguments[i + 1].begin,
                          command.arguments[i + 1].begin + static_cast<uint32_t>(lowest.size()), "3.21"});
      }
    }
  }

  void PortPackage(const CMakeCommand& command) {
    if (command.arguments.empty()) return;
    const std::string_view package = Bare(command.arguments[0]);
    if (package == "NCCL") {
      Replace(command.arguments[0], "rccl");
      return;
    }
    if (package == "CUDNN" || package == "cuDNN" || package == "TensorRT" || package == "NVSHMEM") {
      Left(command.name_begin, FindingLevel::kWarning, fmt::format("{} is NVIDIA's", package),
           package == "TensorRT" ? "MIGraphX has another interface" : "MIOpen has another interface");
      return;
    }
    if (package != "CUDA" && package != "CUDAToolkit") return;
    Replace(command.arguments[0], "hip");
    std::string required;
    for (size_t i = 1; i < command.arguments.size(); ++i) {
      const std::string_view word = Bare(command.arguments[i]);
      // A CUDA version is no HIP version, and hip has no such components.
      if (word == "REQUIRED") required = " REQUIRED";
      if (word == "REQUIRED" || word == "QUIET") continue;
      Remove(command.arguments[i]);
    }
    std::string more;
    for (const std::string& other : packages_) more += fmt::format("\nfind_package({}{})", other, required);
    packages_.clear();
    edits_.push_back({command.end, command.end, more});
  }

  void PortArguments(const CMakeCommand& command) {
    bool drop_rest = false;  // the values of an architecture variable or property
    bool first_value = true;
    const bool sets =
        command.name == "set" || command.name == "set_property" || command.name == "set_target_properties";
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const CMakeArgument& argument = command.arguments[i];
      const std::string_view bare = Bare(argument);
      if (drop_rest) {
        if (bare == "CACHE" || bare == "PARENT_SCOPE" || bare == "FORCE") break;
        const bool one_value = command.name == "set_target_properties";
        if (first_value) {
          Replace(argument, target_.gfx);
        } else {
          Remove(argument);
        }
        first_value = false;
        drop_rest = !one_value;
        continue;
      }
      if (const CMakeName* name = Find(kNames, bare); name != nullptr) {
        Replace(argument, name->hip);
        drop_rest = sets && EndsWith(bare, "ARCHITECTURES");
        first_value = true;
        continue;
      }
      if (const CMakeName* target = Find(kTargets, bare); target != nullptr) {
        Replace(argument, target->hip);
        continue;
      }
      if (const CMakeName* library = Find(kLibraryVariables, bare); library != nullptr) {
        Replace(argument, library->hip);
        continue;
      }
      if (bare == "CUDA_FOUND" || bare == "CUDAToolkit_FOUND") {
        Replace(argument, "hip_FOUND");
        continue;
      }
      if (bare == "CUDA" && i > 0 && Bare(command.arguments[i - 1]) == "LANGUAGE") {
        Replace(argument, "HIP");
        continue;
      }
      PortText(command, argument);
    }
  }

  // An argument that may hold flags, variables and generator expressions.
  void PortText(const CMakeCommand& command, const CMakeArgument& argument) {
    const std::string_view whole = Text(argument);
    std::string text(whole);
    const auto replace_all = [&text](std::string_view from, std::string_view to) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    };
    replace_all("COMPILE_LANGUAGE:CUDA>", "COMPILE_LANGUAGE:HIP>");
    replace_all("COMPILE_LANGUAGE:CUDA,", "COMPILE_LANGUAGE:HIP,");
    replace_all("${CMAKE_CUDA_FLAGS", "${CMAKE_HIP_FLAGS");
    replace_all("${CMAKE_CUDA_ARCHITECTURES}", "${CMAKE_HIP_ARCHITECTURES}");
    replace_all("${CUDA_INCLUDE_DIRS}", "${hip_INCLUDE_DIRS}");
    replace_all("${CUDAToolkit_INCLUDE_DIRS}", "${hip_INCLUDE_DIRS}");
    text = PortFlagText(text);
    if (text != whole) {
      if (text.empty() || text == "\"\"") {
        if (argument.quoted) {
          Replace(argument, "\"\"");
        } else {
          Remove(argument);
        }
      } else {
        Replace(argument, text);
      }
    }
    // What still speaks of CUDA and is none of the project's own names.
    for (const std::string_view mark : {"CUDA_", "CUDA::", "CUDAToolkit_", "CMAKE_CUDA_", "nvcc"}) {
      const size_t at = text.find(mark);
      if (at == std::string::npos || (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 ||
                                                 text[at - 1] == '_' || text[at - 1] == '/'))) {
        continue;
      }
      size_t end = at;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' || text[end] == ':')) {
        ++end;
      }
      const std::string name = text.substr(at, end - at);
      if (own_.count(name) > 0 && name != "CUDA_NVCC_FLAGS") continue;
      if ((command.name == "option" || command.name == "message" || command.name == "function") && mark != "CUDA::")
        continue;
      const bool rdc = name == "CUDA_SEPARABLE_COMPILATION" || name == "CUDA_RESOLVE_DEVICE_SYMBOLS" ||
                       name == "CMAKE_CUDA_SEPARABLE_COMPILATION";
      Left(argument.begin, FindingLevel::kWarning,
           rdc ? fmt::format("CMake's HIP language has no {}", name)
               : fmt::format("'{}' has no counterpart that is known here", name),
           rdc ? "-fgpu-rdc in the compile and link options of the target" : "left as it is; write it for HIP by hand");
      break;
    }
  }

  // .cu files are C++ sources for CMake unless told otherwise.
  void GiveLanguage(const CMakeCommand& command) {
    constexpr std::array<std::string_view, 7> kWithSources = {
        "add_executable", "add_library", "target_sources", "set", "cuda_add_executable", "cuda_add_library", "list"};
    const bool glob =
        command.name == "file" && command.arguments.size() > 2 && StartsWith(Bare(command.arguments[0]), "GLOB");
    if (!glob && std::find(kWithSources.begin(), kWithSources.end(), command.name) == kWithSources.end()) return;
    std::string files;
    bool others = false;
    for (size_t i = glob ? 2 : 1; i < command.arguments.size(); ++i) {
      const std::string_view bare = Bare(command.arguments[i]);
      if (EndsWith(bare, ".cu")) {
        if (given_.count(glob ? fmt::format("${{{}}}", Bare(command.arguments[1])) : std::string(bare)) > 0) continue;
        files += " " + std::string(Text(command.arguments[i]));
      } else if (bare.find('.') != std::string_view::npos) {
        // Headers are compiled in no language.
        bool header = false;
        for (const std::string_view end : {".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl"})
          header = header || EndsWith(bare, end);
        others = others || !header;
      }
    }
    if (files.empty()) return;
    if (glob) {
      if (others) {
        Left(command.name_begin, FindingLevel::kWarning, "collects .cu files together with others",
             "give the .cu files LANGUAGE HIP with set_source_files_properties");
        return;
      }
      files = fmt::format(" ${{{}}}", Bare(command.arguments[1]));
    }
    uint32_t indent = command.name_begin;
    while (indent > 0 && (text_[indent - 1] == ' ' || text_[indent - 1] == '\t')) --indent;
    const std::string_view blanks = text_.substr(indent, command.name_begin - indent);
    edits_.push_back({command.end, command.end,
                      fmt::format("\n{}set_source_files_properties({} PROPERTIES LANGUAGE HIP)", blanks,
                                  std::string_view(files).substr(1))});
  }

  const SourceFile source_;
  const std::string_view text_;
  const PortTarget& target_;
  const std::vector<CMakeCommand> commands_;
  std::set<std::string, std::less<>> own_;
  std::set<std::string, std::less<>> given_;
  std::set<std::string> packages_;
  std::vector<Edit> edits_;
  std::vector<Finding> findings_;
};

}  // namespace

PortedBuildFile PortCMakeFile(const std::string& path, std::string_view text, const PortTarget& target) {
  return Porter(path, text, target).Run();
}

}  // namespace portolan
