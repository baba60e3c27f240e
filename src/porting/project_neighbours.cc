#include "porting/project_neighbours.h"

#include <filesystem>
#include <set>

namespace portolan {
namespace {

namespace fs = std::filesystem;

// The folders behind -I that lead out of the project.
std::vector<std::string> OutsideFolders(const std::vector<std::string>& makefiles) {
  std::vector<std::string> folders;
  for (const std::string& text : makefiles) {
    for (size_t at = text.find("-I"); at != std::string::npos; at = text.find("-I", at + 1)) {
      size_t begin = text.find_first_not_of(" \t", at + 2);
      if (begin == std::string::npos) break;
      const std::string folder = text.substr(begin, text.find_first_of(" \t\r\n\"'\\", begin) - begin);
      if (folder.substr(0, 2) == ".." && folder.find('$') == std::string::npos) folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace

std::vector<std::string> OutsideHeaders(const std::string& root, const std::vector<std::string>& makefiles,
                                        const std::vector<const SourceFile*>& sources) {
  const std::vector<std::string> folders = OutsideFolders(makefiles);
  std::set<std::string> found;
  std::error_code error;
  const auto add = [&](const fs::path& relative) {
    const fs::path path = relative.lexically_normal();
    if (path.empty() || *path.begin() != ".." || !fs::is_regular_file(fs::path(root) / path, error)) return;
    found.insert(path.generic_string());
  };
  for (const SourceFile* source : sources) {
    for (size_t i = 1; i < source->size(); ++i) {
      const TokenKind kind = source->tokens()[i].kind;
      if ((kind != TokenKind::kString && kind != TokenKind::kHeaderName) || !source->Is(i - 1, "include")) continue;
      const std::string_view spelled = source->Text(i);
      if (spelled.size() < 3) continue;
      const fs::path name(spelled.substr(1, spelled.size() - 2));
      if (name.is_absolute()) continue;
      if (kind == TokenKind::kString) add(fs::path(source->path()).parent_path() / name);
      for (const std::string& folder : folders) add(fs::path(folder) / name);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace portolan
