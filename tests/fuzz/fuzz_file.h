#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace portolan {

// For readers that take a path: a folder of this process below the system's temporary one, with one file that holds the
// bytes under test. The folder goes away at exit.
class FuzzFile {
 public:
  explicit FuzzFile(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("portolan_fuzz_" + std::to_string(getpid()))),
        path_(folder_ / name) {
    std::filesystem::create_directories(path_.parent_path());
  }
  ~FuzzFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  void Write(const uint8_t* data, size_t size) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  std::string folder() const { return folder_.string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace portolan
