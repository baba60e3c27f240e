#include "porting/project_files.h"

#include <fstream>
#include <iterator>

#include "base/text.h"
#include "porting/compat.h"
#include "porting/job/job_rule.h"

namespace portolan {

namespace fs = std::filesystem;

FileRole RoleOf(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string extension = path.extension().string();
  if (name == kCompatHeaderName) return FileRole::kOther;
  for (const char* source : {".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx", ".c", ".C", ".inl",
                             ".inc", ".ipp", ".tpp", ".tcc", ".impl"}) {
    if (extension == source) return FileRole::kSource;
  }
  const std::string lower = LowerCase(name);
  if (extension == ".mk" || lower.substr(0, 8) == "makefile" || lower == "gnumakefile") return FileRole::kMakefile;
  if (lower == "cmakelists.txt" || extension == ".cmake") return FileRole::kCMake;
  if (JobFileKindOf(path.generic_string()) != JobFileKind::kNone) return FileRole::kJob;
  return FileRole::kOther;
}

bool ReadFile(const fs::path& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  text->assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return !file.bad();
}

bool LooksBinary(const std::string& text) {
  constexpr size_t kLooked = 8192;
  return std::string_view(text).substr(0, kLooked).find('\0') != std::string_view::npos;
}

bool IsInside(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = inner.lexically_relative(outer);
  return !relative.empty() && *relative.begin() != "..";
}

bool WriteFile(const fs::path& path, std::string_view text, const fs::path& like) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + ".portolan-new";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) {
      fs::remove(temporary, error);
      return false;
    }
  }
  const fs::path& model = !like.empty() && fs::exists(like, error) ? like : path;
  if (fs::exists(model, error)) fs::permissions(temporary, fs::status(model, error).permissions(), error);
  fs::rename(temporary, path, error);
  return !error;
}

}  // namespace portolan
