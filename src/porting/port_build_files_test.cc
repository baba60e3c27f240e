#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "porting/port.h"
#include "porting/process.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(PortBuildFiles, AProjectsBuildAndJobFiles) {
  const TemporaryFolder folder;
  ASSERT_NE(folder.path(), "");
  const fs::path in = fs::path(folder.path()) / "in";
  const fs::path out = fs::path(folder.path()) / "out";
  Write(in / "CMakeLists.txt", "project(a LANGUAGES CUDA)\nadd_library(k k.cu)\ncuda_compile(x k.cu)\n");
  Write(in / "k.cu", "__global__ void k() {}\nvoid f() { k<<<1, 64>>>(); }\n");
  Write(in / "run.sh", "export CUDA_HOME=/usr\n");
  Write(in / "requirements.txt", "cupy-cuda12x\n");
  Write(in / "setup.py", "flags = ['-lcublas']\nCUDAExtension(extra_link_args=flags)\n");
  fs::permissions(in / "setup.py", fs::perms::owner_exec, fs::perm_options::add);
  fs::permissions(in / "run.sh", fs::perms::owner_exec, fs::perm_options::add);
  const PortOptions options = {in.string(), out.string(), ""};
  const auto report = Port(options, TestTarget());
  ASSERT_TRUE(report);
  EXPECT_EQ(Read(out / "CMakeLists.txt"),
            "project(a LANGUAGES HIP)\nadd_library(k k.cu)\n"
            "set_source_files_properties(k.cu PROPERTIES LANGUAGE HIP)\ncuda_compile(x k.cu)\n");
  EXPECT_NE(Read(out / "setup.py").find("hipblas"), std::string::npos);
  EXPECT_NE(fs::status(out / "setup.py").permissions() & fs::perms::owner_exec, fs::perms::none);
  // What is only audited keeps its bytes and its permissions.
  EXPECT_EQ(Read(out / "run.sh"), "export CUDA_HOME=/usr\n");
  EXPECT_NE(fs::status(out / "run.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
  std::set<std::string> found;
  for (const Finding& finding : report->findings) {
    found.insert(finding.file + ":" + std::to_string(finding.position.line) + " " + finding.kind);
  }
  EXPECT_EQ(found, (std::set<std::string>{"CMakeLists.txt:3 build-file", "k.cu:1 missing-launch-bounds",
                                          "requirements.txt:1 wheel-pin", "run.sh:1 job-environment",
                                          "setup.py:1 extension-flags"}));
  // For the check by compiling.
  ASSERT_EQ(report->units.size(), 1u);
  EXPECT_EQ(report->units[0].source, "k.cu");
  EXPECT_TRUE(report->units[0].device);
  EXPECT_EQ(report->launched_blocks.at("k"), std::set<long long>{64});
  EXPECT_EQ(report->kernels.at("k").second.line, 1);
  // An audit finds the same and writes nothing.
  const auto audit = Port({in.string(), "", ""}, TestTarget());
  ASSERT_TRUE(audit);
  EXPECT_EQ(audit->findings.size(), report->findings.size());
  EXPECT_EQ(audit->files_changed, 1);  // k.cu would be
}

}  // namespace
}  // namespace portolan
