#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace portolan {

enum class FileRole : uint8_t { kSource, kMakefile, kCMake, kJob, kOther };

// By the file's name.
FileRole RoleOf(const std::filesystem::path& path);

// Reads a whole file; false when it cannot be.
bool ReadFile(const std::filesystem::path& path, std::string* text);

// Whether the beginning of a file holds a zero byte.
bool LooksBinary(const std::string& text);

bool IsInside(const std::filesystem::path& inner, const std::filesystem::path& outer);

// Writes beside and renames, so that a file is old or new but never half. It gets the permissions of `like`, the file
// that it was made of, where there is one. False when it cannot be written.
bool WriteFile(const std::filesystem::path& path, std::string_view text, const std::filesystem::path& like = {});

}  // namespace portolan
