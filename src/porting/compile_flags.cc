#include "porting/compile_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostIncludeFolders = 64;
constexpr size_t kLargestBuildFile = size_t{64} << 20;

std::string ReadText(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > kLargestBuildFile) return "";
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool StartsWith(const std::string& text, std::string_view start) { return text.compare(0, start.size(), start) == 0; }

std::string Absolute(const std::string& path, const std::string& folder) {
  return (fs::path(path).is_absolute() ? fs::path(path) : fs::path(folder) / path).lexically_normal().string();
}

// The names in #include lines, quoted or not.
void CollectIncludes(const std::string& text, std::set<std::string>* names) {
  size_t at = 0;
  while ((at = text.find("include", at)) != std::string::npos) {
    const size_t word = at;
    at += 7;
    size_t hash = word;
    while (hash > 0 && (text[hash - 1] == ' ' || text[hash - 1] == '\t')) --hash;
    if (hash == 0 || text[hash - 1] != '#') continue;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    if (at >= text.size() || (text[at] != '"' && text[at] != '<')) continue;
    const char closing = text[at] == '"' ? '"' : '>';
    const size_t end = text.find_first_of(std::string(1, closing) + "\n", at + 1);
    if (end != std::string::npos && text[end] == closing) names->insert(text.substr(at + 1, end - at - 1));
  }
}

// The commands of a CMake file that say flags, as words of a compiler.
std::vector<std::string> WordsOfCMake(const std::string& text) {
  std::vector<std::string> words;
  std::string clean;
  for (const std::string& line : Split(text, '\n')) clean += line.substr(0, line.find('#')) + "\n";
  const std::string lower = LowerCase(clean);
  const auto each = [&](const std::string& command, const std::string& prefix) {
    for (size_t at = 0; (at = lower.find(command, at)) != std::string::npos;) {
      const size_t before = at;
      at += command.size();
      if (before > 0 &&
          (std::isalnum(static_cast<unsigned char>(lower[before - 1])) != 0 || lower[before - 1] == '_')) {
        continue;
      }
      const size_t open = clean.find_first_not_of(" \t\n", at);
      if (open == std::string::npos || clean[open] != '(') continue;
      const size_t close = clean.find(')', open);
      if (close == std::string::npos) break;
      size_t skipped = command == "target_include_directories" || command == "target_compile_definitions" ? 1 : 0;
      for (std::string word : ShellWords(clean.substr(open + 1, close - open - 1))) {
        if (skipped > 0) {
          --skipped;
          continue;
        }
        for (const char* root : {"${CMAKE_SOURCE_DIR}", "${PROJECT_SOURCE_DIR}", "${CMAKE_CURRENT_SOURCE_DIR}",
                                 "${CMAKE_CURRENT_LIST_DIR}"}) {
          if (StartsWith(word, root)) word = "." + word.substr(std::string(root).size());
        }
        if (word == "PUBLIC" || word == "PRIVATE" || word == "INTERFACE" || word == "SYSTEM" || word == "BEFORE" ||
            word == "AFTER") {
          continue;
        }
        words.push_back(StartsWith(word, "-D") || prefix.empty() ? word : prefix + word);
      }
    }
  };
  each("include_directories", "-I");
  each("target_include_directories", "-I");
  each("add_definitions", "");
  each("add_compile_definitions", "-D");
  each("target_compile_definitions", "-D");
  for (const char* variable : {"cmake_cxx_standard ", "cmake_cuda_standard "}) {
    const size_t at = lower.find(variable);
    if (at == std::string::npos) continue;
    const std::string digits = lower.substr(at + std::string(variable).size(), 2);
    if (digits.size() == 2 && std::isdigit(static_cast<unsigned char>(digits[0])) != 0) {
      words.push_back("-std=c++" + digits);
    }
  }
  return words;
}

}  // namespace

std::vector<std::string> ShellWords(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      if (command[i + 1] != '\n') {
        word.push_back(command[i + 1]);
        in_word = true;
      }
      ++i;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

CompileFlags FlagsAmong(const std::vector<std::string>& words, const std::string& folder) {
  CompileFlags result;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-fgpu-rdc" || word == "-rdc=true" || word == "-dc" || word == "--relocatable-device-code=true") {
      result.relocatable = true;
    }
    if (word.find('$') != std::string::npos) continue;
    const bool has_next = i + 1 < words.size() && words[i + 1].find('$') == std::string::npos;
    if (StartsWith(word, "-std=") || StartsWith(word, "--std=")) {
      result.flags.push_back(word.substr(word.find("-std=")));
    } else if ((StartsWith(word, "-D") || StartsWith(word, "-U")) && word.size() > 2) {
      const char first = word[2];
      if (std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '_') result.flags.push_back(word);
    } else if (StartsWith(word, "-I") && word.size() > 2) {
      result.flags.push_back("-I" + Absolute(word.substr(2), folder));
    } else if ((word == "-I" || word == "-isystem") && has_next) {
      result.flags.push_back(word);
      result.flags.push_back(Absolute(words[++i], folder));
    } else if (word == "-include" && has_next) {
      result.flags.push_back(word);
      result.flags.push_back(Absolute(words[++i], folder));
    } else if (word == "-D" && has_next) {
      result.flags.push_back("-D" + words[++i]);
    }
  }
  return result;
}

ProjectFlags::ProjectFlags(std::string root, const std::vector<std::string>& sources,
                           const std::vector<std::string>& all_files)
    : root_(std::move(root)) {
  std::set<std::string> names;
  for (const std::string& source : sources) CollectIncludes(ReadText(fs::path(root_) / source), &names);
  // A folder is wanted when a file below it is named from there: ends with "/" + name.
  std::map<std::string, std::vector<std::string>> by_base;
  for (const std::string& file : all_files) by_base[fs::path(file).filename().string()].push_back(file);
  std::set<std::string> folders;
  for (const std::string& name : names) {
    const auto candidates = by_base.find(fs::path(name).filename().string());
    if (candidates == by_base.end()) continue;
    for (const std::string& file : candidates->second) {
      if (file == name) {
        folders.insert(root_);
      } else if (file.size() > name.size() && file.compare(file.size() - name.size(), name.size(), name) == 0 &&
                 file[file.size() - name.size() - 1] == '/') {
        folders.insert((fs::path(root_) / file.substr(0, file.size() - name.size() - 1)).string());
      }
    }
  }
  for (const std::string& folder : folders) {
    if (include_folders_.size() < kMostIncludeFolders) include_folders_.push_back(folder);
  }
}

CompileFlags ProjectFlags::Of(const std::string& source) const {
  CompileFlags result;
  const fs::path root(root_);
  bool found = false;
  for (const char* place : {"compile_commands.json", "build/compile_commands.json"}) {
    const std::string text = ReadText(root / place);
    if (text.empty() || found) continue;
    const nlohmann::json commands = nlohmann::json::parse(text, nullptr, false);
    if (!commands.is_array()) continue;
    for (const nlohmann::json& entry : commands) {
      if (!entry.is_object() || !entry.contains("file") || !entry["file"].is_string()) continue;
      const std::string file = entry["file"].get<std::string>();
      const bool same =
          file == source || (file.size() > source.size() && file[file.size() - source.size() - 1] == '/' &&
                             file.compare(file.size() - source.size(), source.size(), source) == 0);
      if (!same) continue;
      std::vector<std::string> words;
      if (entry.contains("command") && entry["command"].is_string()) words = ShellWords(entry["command"]);
      if (entry.contains("arguments") && entry["arguments"].is_array()) {
        for (const nlohmann::json& word : entry["arguments"]) {
          if (word.is_string()) words.push_back(word.get<std::string>());
        }
      }
      const bool has_folder = entry.contains("directory") && entry["directory"].is_string();
      result = FlagsAmong(words, has_folder ? entry["directory"].get<std::string>() : root_);
      found = true;
      break;
    }
  }
  // The nearest build file above the source.
  for (fs::path folder = (root / source).parent_path(); !found; folder = folder.parent_path()) {
    for (const char* name : {"Makefile", "makefile", "GNUmakefile"}) {
      const std::string text = ReadText(folder / name);
      if (text.empty() || found) continue;
      std::string clean;
      for (const std::string& line : Split(text, '\n')) clean += line.substr(0, line.find('#')) + "\n";
      result = FlagsAmong(ShellWords(clean), folder.string());
      found = true;
    }
    const std::string cmake = found ? "" : ReadText(folder / "CMakeLists.txt");
    if (!cmake.empty()) {
      result = FlagsAmong(WordsOfCMake(cmake), folder.string());
      found = true;
    }
    if (folder == root || !folder.has_relative_path() || folder.string().size() <= root_.size()) break;
  }
  for (const std::string& folder : include_folders_) result.flags.push_back("-I" + folder);
  return result;
}

}  // namespace portolan
