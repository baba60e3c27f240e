#include "porting/verify/build_commands.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "porting/compile_flags.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool IsCompiler(const std::string& word) {
  const std::string name = fs::path(word).filename().string();
  constexpr std::array<std::string_view, 16> kNames = {"nvcc",  "hipcc",  "g++",    "gcc",   "c++",     "cc",
                                                       "mpicc", "mpicxx", "mpic++", "clang", "clang++", "amdclang++",
                                                       "icpx",  "icpc",   "nvc++",  "mpiCC"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || StartsWith(name, "g++-") ||
         StartsWith(name, "clang++-");
}

bool IsDeviceCompiler(const std::string& word) {
  const std::string name = fs::path(word).filename().string();
  return name == "hipcc" || name == "amdclang++";
}

bool IsSource(const std::string& word) {
  constexpr std::array<std::string_view, 8> kExtensions = {".cu", ".cpp", ".cc", ".c", ".cxx", ".C", ".hip", ".c++"};
  return std::find(kExtensions.begin(), kExtensions.end(), fs::path(word).extension().string()) != kExtensions.end();
}

// Libraries of the vendors, which the runtime's headers and library stand for.
bool IsVendorLibrary(std::string_view word) {
  constexpr std::array<std::string_view, 20> kNames = {
      "-lcuda",     "-lcudart",    "-lcudart_static", "-lcublas",     "-lcublasLt",  "-lcurand",   "-lcufft",
      "-lcusparse", "-lcusolver",  "-lnvrtc",         "-lnvToolsExt", "-lamdhip64",  "-lhipblas",  "-lhiprand",
      "-lrocrand",  "-lhipsparse", "-lhipfft",        "-lrocblas",    "-lcudadevrt", "-lhipblaslt"};
  return std::find(kNames.begin(), kNames.end(), word) != kNames.end();
}

// A path of a build command, relative to `root` where it is below it.
std::string Relative(const std::string& path, const std::string& folder, const std::string& root) {
  const fs::path full = (fs::path(path).is_absolute() ? fs::path(path) : fs::path(folder) / path).lexically_normal();
  return full.lexically_relative(root).generic_string();
}

class MakeOutput {
 public:
  explicit MakeOutput(const std::string& root) : root_(fs::path(root).lexically_normal().string()) {
    if (!root_.empty() && root_.back() == '/') root_.pop_back();
    folder_ = root_;
  }

  BuildPlan Run(const std::string& output) {
    std::string joined;
    for (const std::string& line : Split(output, '\n')) {
      joined += line;
      if (!joined.empty() && joined.back() == '\\') {
        joined.back() = ' ';
        continue;
      }
      Line(joined);
      joined.clear();
    }
    return std::move(plan_);
  }

 private:
  void Line(const std::string& line) {
    if (const size_t at = line.find("ing directory '"); at != std::string::npos) {
      const std::string folder = line.substr(at + 15, line.rfind('\'') - at - 15);
      if (line.find("Entering") != std::string::npos) {
        folders_.push_back(folder_);
        folder_ = folder;
      } else if (!folders_.empty()) {
        folder_ = folders_.back();
        folders_.pop_back();
      }
      return;
    }
    const std::string outer = folder_;
    for (const std::string& command : Commands(line)) Command(command);
    folder_ = outer;
  }

  // Splits at && and ; outside of quotes.
  static std::vector<std::string> Commands(const std::string& line) {
    std::vector<std::string> commands(1);
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == ';' || (c == '&' && i + 1 < line.size() && line[i + 1] == '&')) {
        if (c == '&') ++i;
        commands.emplace_back();
        continue;
      }
      commands.back().push_back(c);
    }
    return commands;
  }

  void Command(const std::string& command) {
    const std::vector<std::string> words = ShellWords(command);
    if (words.empty()) return;
    if (words[0] == "cd" && words.size() == 2) {
      folder_ = (fs::path(words[1]).is_absolute() ? fs::path(words[1]) : fs::path(folder_) / words[1]).string();
      return;
    }
    if (IsCompiler(words[0])) {
      Compile(words);
    } else if ((words[0] == "ar" || StartsWith(words[0], "ar ")) && words.size() > 3) {
      for (size_t i = 3; i < words.size(); ++i) {
        archives_[Relative(words[2], folder_, root_)].push_back(Relative(words[i], folder_, root_));
      }
    } else if (!plan_.programs.empty() && Runs(words)) {
      plan_.run_commands.push_back(command);
    }
  }

  bool Runs(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      if (StartsWith(word, "./")) return true;
      for (const BuildProgram& program : plan_.programs) {
        if (Relative(word, folder_, root_) == program.name) return true;
      }
    }
    return false;
  }

  void Compile(std::vector<std::string> words) {
    BuildUnit common;
    common.device = IsDeviceCompiler(words[0]);
    std::vector<std::string> sources;
    std::vector<std::string> inputs;  // objects and libraries
    std::vector<std::string> flags;
    std::string output;
    bool only_compiles = false;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "-c" || word == "-dc" || word == "--device-c") {
        only_compiles = true;
      } else if (word == "-o" && i + 1 < words.size()) {
        output = words[++i];
      } else if (word == "-x" && i + 1 < words.size()) {
        common.device = common.device || words[i + 1] == "cu" || words[i + 1] == "hip";
        ++i;
      } else if (word == "-Xcompiler" || word == "--compiler-options") {
        continue;  // the next word is a flag of the host's compiler
      } else if (word == "-Xptxas" || word == "-ccbin" || word == "-Xlinker" || word == "-gencode") {
        ++i;
      } else if (word == "-fopenmp" || word == "-Xcompiler=-fopenmp" || word == "-qopenmp" ||
                 StartsWith(word, "-mp=")) {
        common.openmp = true;
      } else if (StartsWith(word, "-l")) {
        if (!IsVendorLibrary(word)) inputs.push_back(word);
      } else if (StartsWith(word, "-L") || StartsWith(word, "-pthread")) {
        inputs.push_back(word);
        if (word == "-L" && i + 1 < words.size()) inputs.back() += words[++i];
      } else if (word[0] != '-' && IsSource(word)) {
        sources.push_back(word);
      } else if (word[0] != '-' && (fs::path(word).extension() == ".o" || fs::path(word).extension() == ".obj" ||
                                    fs::path(word).extension() == ".a")) {
        inputs.push_back(Relative(word, folder_, root_));
      } else {
        flags.push_back(word);
      }
    }
    common.flags = FlagsAmong(flags, folder_).flags;
    std::vector<BuildUnit> units;
    for (const std::string& source : sources) {
      BuildUnit unit = common;
      unit.source = Relative(source, folder_, root_);
      unit.device = unit.device || fs::path(source).extension() == ".cu" || fs::path(source).extension() == ".hip";
      unit.object = only_compiles && !output.empty()
                        ? Relative(output, folder_, root_)
                        : Relative(fs::path(source).stem().string() + ".o", folder_, root_);
      units.push_back(unit);
    }
    if (only_compiles) {
      for (const BuildUnit& unit : units) objects_[unit.object] = unit;
      return;
    }
    BuildProgram program;
    program.name = Relative(output.empty() ? "a.out" : output, folder_, root_);
    program.units = units;
    AddInputs(inputs, &program);
    if (!program.units.empty()) plan_.programs.push_back(program);
  }

  void AddInputs(const std::vector<std::string>& inputs, BuildProgram* program) {
    for (const std::string& input : inputs) {
      const auto object = objects_.find(input);
      if (object != objects_.end()) {
        program->units.push_back(object->second);
      } else if (const auto archive = archives_.find(input); archive != archives_.end()) {
        AddInputs(archive->second, program);
      } else if (input[0] == '-') {
        program->libraries.push_back(input);
      }
    }
  }

  std::string root_;
  std::string folder_;
  std::vector<std::string> folders_;
  std::map<std::string, BuildUnit> objects_;
  std::map<std::string, std::vector<std::string>> archives_;
  BuildPlan plan_;
};

}  // namespace

BuildPlan ReadMakeOutput(const std::string& output, const std::string& root) { return MakeOutput(root).Run(output); }

BuildPlan PlanWithoutBuild(const std::string& root) {
  std::vector<std::string> sources;
  std::vector<std::string> all;
  std::set<std::string> included;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(root, error); entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (error) break;
    if (!entry->is_regular_file(error)) continue;
    const std::string name = entry->path().lexically_relative(root).generic_string();
    all.push_back(name);
    if (IsSource(name)) sources.push_back(name);
    std::ifstream file(entry->path());
    for (std::string line; IsSource(name) && std::getline(file, line);) {
      const size_t open = line.find('"');
      if (line.find("include") == std::string::npos || open == std::string::npos) continue;
      included.insert(fs::path(line.substr(open + 1, line.rfind('"') - open - 1)).filename().string());
    }
  }
  std::sort(sources.begin(), sources.end());
  const ProjectFlags flags(root, sources, all);
  BuildProgram program;
  program.name = "a.out";
  for (const std::string& source : sources) {
    if (included.count(fs::path(source).filename().string()) > 0) continue;
    BuildUnit unit;
    unit.source = source;
    unit.device = fs::path(source).extension() == ".cu" || fs::path(source).extension() == ".hip";
    unit.flags = flags.Of(source).flags;
    program.units.push_back(unit);
  }
  BuildPlan plan;
  if (!program.units.empty()) plan.programs.push_back(program);
  return plan;
}

}  // namespace portolan
