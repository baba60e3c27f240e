#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace portolan {

// A folder under the system's temporary one that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    static int counter = 0;
    path_ = std::filesystem::temp_directory_path() / (std::string("portolan_hw_") + info->name() + "_" +
                                                      std::to_string(getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  // Writes `text` to `name` below the folder and returns the full path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

// "{value: V, kind: datasheet, source: test, date: 2026-11-30}"
inline std::string FactText(const std::string& value) {
  return "{value: " + value + ", kind: datasheet, source: test, date: 2026-11-30}";
}

// The fewest keys that load. The lines are numbered in the tests: name 1, vendor 2, compute_units 3, hbm_bytes 4,
// hbm_peak_bytes_per_s 5, peak_matrix_flops_per_s 6, bf16 7.
inline std::string MinimalChip(const std::string& vendor) {
  return "name: Test chip\nvendor: " + vendor + "\ncompute_units: " + FactText("100") +
         "\nhbm_bytes: " + FactText("100e9") + "\nhbm_peak_bytes_per_s: " + FactText("4e12") +
         "\npeak_matrix_flops_per_s:\n  bf16: " + FactText("1e15") + "\n";
}

}  // namespace portolan
