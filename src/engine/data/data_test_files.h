#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace portolan {

// Writes a file of the test's temporary folder; returns its path.
inline std::string DataTestFile(const std::string& name, std::string_view text) {
  const std::string path = ::testing::TempDir() + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
  return path;
}

}  // namespace portolan
