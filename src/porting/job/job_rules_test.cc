// Every testdata/<rule>.<name> states its expectations at the end of its lines: "#! level kind; level kind" is the
// findings of this line, and "#-> text" what the line becomes. Both are taken off before the rules see the file. A line
// without them must have no finding and stay as it is. The part behind <rule>. decides the kind of file; a folder
// gfx942 holds the cases for that chip, the others are for gfx950.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "porting/job/job_rule.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

void CheckFile(const fs::path& path, const std::string& gfx) {
  const std::string name = path.filename().string();
  std::ifstream file(path, std::ios::binary);
  const std::string marked((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string text;
  std::map<int, std::vector<std::string>> expected;
  std::map<int, std::string> becomes;
  int number = 0;
  for (std::string line : Split(marked, '\n')) {
    ++number;
    if (const size_t at = line.find("#-> "); at != std::string::npos) {
      becomes[number] = Trim(line.substr(at + 4));
      line.resize(at);
    }
    if (const size_t at = line.find("#! "); at != std::string::npos) {
      for (const std::string& one : Split(line.substr(at + 3), ';')) expected[number].push_back(Trim(one));
      line.resize(at);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  const std::string file_name = name.substr(name.find('.') + 1);
  const JobFile job(file_name, text, JobFileKindOf(file_name));
  ASSERT_NE(job.kind(), JobFileKind::kNone) << name;
  const AuditedJobFile audited = AuditJobFile(job, TestTarget(gfx));
  std::map<int, std::vector<std::string>> found;
  for (const Finding& finding : audited.findings) {
    found[finding.position.line].push_back(std::string(FindingLevelName(finding.level)) + " " + finding.kind);
  }
  const std::vector<std::string> before = Split(text, '\n');
  const std::vector<std::string> after = Split(audited.text, '\n');
  ASSERT_EQ(before.size(), after.size()) << name;
  for (int line = 1; line <= static_cast<int>(before.size()); ++line) {
    std::sort(expected[line].begin(), expected[line].end());
    std::sort(found[line].begin(), found[line].end());
    EXPECT_EQ(found[line], expected[line]) << name << ":" << line << ": " << before[line - 1];
    const auto change = becomes.find(line);
    EXPECT_EQ(Trim(after[line - 1]), change != becomes.end() ? change->second : Trim(before[line - 1]))
        << name << ":" << line;
  }
  const JobFile again(file_name, audited.text, job.kind());
  EXPECT_EQ(AuditJobFile(again, TestTarget(gfx)).text, audited.text) << name;
}

TEST(JobRules, DoWhatTheirTestDataSays) {
  std::set<std::string> rules;
  for (const std::string gfx : {"gfx950", "gfx942"}) {
    const fs::path folder = fs::path("src/porting/job/testdata") / (gfx == "gfx950" ? "" : gfx);
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = entry.path().filename().string();
      rules.insert(name.substr(0, name.find('.')));
      CheckFile(entry.path(), gfx);
    }
  }
  for (const JobRule& rule : AllJobRules()) EXPECT_EQ(rules.count(rule.id), 1u) << "no test data of " << rule.id;
}

TEST(JobRules, KindsOfFiles) {
  EXPECT_EQ(JobFileKindOf("a/Dockerfile.gpu"), JobFileKind::kContainer);
  EXPECT_EQ(JobFileKindOf("a/setup.py"), JobFileKind::kSetup);
  EXPECT_EQ(JobFileKindOf("requirements-dev.txt"), JobFileKind::kRequirements);
  EXPECT_EQ(JobFileKindOf("README.txt"), JobFileKind::kNone);
  EXPECT_EQ(JobFileKindOf("x.cu"), JobFileKind::kNone);
}

// Law: any beginning of a file is audited without a crash.
TEST(JobRules, CutFiles) {
  const std::string text =
      "import triton\nx = f(num_warps=8, s='''a\n''') \\\n# c\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
      "env = {\"CUDA_HOME\": r'\\'}\nif torch.cuda.get_device_capability()[0] >= 9: pass\nf\"\xC3\xA9{x!r}\"";
  for (size_t size = 0; size <= text.size(); ++size) {
    for (const char* name :
         {"a.py", "setup.py", "run.sh", "Dockerfile", "requirements.txt", "a.yml", "pyproject.toml"}) {
      AuditJobFile(JobFile(name, text.substr(0, size), JobFileKindOf(name)), TestTarget());
    }
  }
}

}  // namespace
}  // namespace portolan
