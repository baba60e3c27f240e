#include "base/json.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace portolan {
namespace {

using nlohmann::ordered_json;

// Appends the path of the first non-finite number to `path` and returns true; otherwise leaves it alone.
bool FindNonFinite(const ordered_json& value, std::string* path) {
  const size_t length = path->size();
  if (value.is_number_float()) return !std::isfinite(value.get<double>());
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      *path += (length == 0 ? "" : ".") + key;
      if (FindNonFinite(child, path)) return true;
      path->resize(length);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      *path += "[" + std::to_string(i) + "]";
      if (FindNonFinite(value[i], path)) return true;
      path->resize(length);
    }
  }
  return false;
}

tl::unexpected<Error> WriteError(const std::string& path, const std::string& message) {
  return tl::make_unexpected(Error{ErrorCode::kIo, "cannot be written: " + message, path, 0, {}});
}

std::string LastError() { return std::generic_category().message(errno); }

bool WriteAll(const std::string& text, std::FILE* stream) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
}

Status WriteStream(const std::string& path, const std::string& text) {
  std::FILE* stream = std::fopen(path.c_str(), "wb");
  if (stream == nullptr) return WriteError(path, LastError());
  const bool written = WriteAll(text, stream);
  const std::string reason = LastError();
  if (std::fclose(stream) != 0 || !written) return WriteError(path, reason);
  return {};
}

}  // namespace

std::string FirstNonFinite(const ordered_json& document) {
  std::string path;
  if (!FindNonFinite(document, &path)) return "";
  return path.empty() ? "the document" : path;
}

Status WriteJsonFile(const std::string& path, const ordered_json& document) {
  namespace fs = std::filesystem;
  if (const std::string bad = FirstNonFinite(document); !bad.empty()) {
    return tl::make_unexpected(
        Error{ErrorCode::kInvalidValue, "must be a finite number to be written as JSON", path, 0, bad});
  }
  const std::string text = document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (path == "-") {
    if (!WriteAll(text, stdout)) return WriteError("standard output", LastError());
    return {};
  }
  std::error_code ignored;
  fs::path target = path;
  if (fs::is_symlink(target, ignored)) target = fs::weakly_canonical(target, ignored);
  if (fs::is_directory(target, ignored)) return WriteError(path, "is a folder");
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) return WriteStream(path, text);
  const std::string temporary = target.string() + ".tmp" + std::to_string(::getpid());
  if (Status status = WriteStream(temporary, text); !status) {
    fs::remove(temporary, ignored);
    status.error().file = path;
    return status;
  }
  std::error_code renamed;
  fs::rename(temporary, target, renamed);
  if (renamed) {
    fs::remove(temporary, ignored);
    return WriteError(path, renamed.message());
  }
  return {};
}

}  // namespace portolan
