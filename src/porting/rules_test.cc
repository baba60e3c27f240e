// Every testdata/<rule>.cu states its own expectations at the end of its lines:
//   //-> text          the line becomes `text` (blanks at both ends do not count)
//   //! level kind     a finding at this line; several stand in one comment, separated by ;
//   //+ text           a line that the port puts before this one; several stand in one comment, separated by |
// A line without them must stay as it is and have no finding.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "porting/port.h"
#include "porting/test_target.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Takes the part behind `mark` off the end of `line`.
std::string Take(std::string* line, const std::string& mark) {
  const size_t at = line->find(mark);
  if (at == std::string::npos) return "";
  const size_t end = std::min(line->find("//", at + 2), line->size());
  const std::string value = line->substr(at + mark.size(), end - at - mark.size());
  line->erase(at, end - at);
  return Trim(value);
}

void CheckFile(const fs::path& path, const PortTarget& target) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const SourceFile source("rule.cuh", text);
  ProjectFacts facts;
  CollectFacts(source, &facts);
  CollectLaunches(source, &facts);
  const PortedSource ported = PortSource(source, facts, target, HipDeclarations(), "");
  std::map<int, std::vector<std::string>> findings;
  for (const Finding& finding : ported.findings) {
    findings[finding.position.line].push_back(std::string(FindingLevelName(finding.level)) + " " + finding.kind);
  }
  const std::vector<std::string> before = Split(text, '\n');
  const std::vector<std::string> after = Split(ported.text, '\n');
  size_t out = 0;
  for (size_t in = 0; in < before.size(); ++in) {
    std::string line = before[in];
    const std::string place = path.filename().string() + ":" + std::to_string(in + 1);
    const std::string becomes = Take(&line, "//->");
    const std::string finding_text = Take(&line, "//!");
    const std::string added = Take(&line, "//+");
    std::vector<std::string> expected;
    for (const std::string& one : Split(finding_text, ';')) {
      if (!Trim(one).empty()) expected.push_back(Trim(one));
    }
    std::vector<std::string>& found = findings[static_cast<int>(in) + 1];
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected) << place;
    for (const std::string& one : Split(added, '|')) {
      if (added.empty()) break;
      ASSERT_LT(out, after.size()) << place;
      EXPECT_EQ(Trim(after[out++]), Trim(one)) << place;
    }
    ASSERT_LT(out, after.size()) << place;
    std::string result = after[out++];
    Take(&result, "//->");
    Take(&result, "//!");
    Take(&result, "//+");
    EXPECT_EQ(Trim(result), becomes.empty() ? Trim(line) : becomes) << place;
  }
  EXPECT_EQ(out, after.size()) << path;

  // What has been ported stays as it is.
  const SourceFile again("rule.cuh", ported.text);
  ProjectFacts again_facts;
  CollectFacts(again, &again_facts);
  CollectLaunches(again, &again_facts);
  EXPECT_EQ(PortSource(again, again_facts, target, HipDeclarations(), "").text, ported.text) << path;
}

TEST(PortingRules, DoWhatTheirTestDataSays) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator("src/porting/testdata")) {
    if (entry.path().extension() != ".cu") continue;
    files.insert(entry.path().stem().string());
    // <rule>.gfx942.cu and <rule>.rocm7.cu are for another target, <rule>.calls.cu for launches as calls.
    const bool gfx942 = entry.path().stem().extension() == ".gfx942";
    const bool rocm7 = entry.path().stem().extension() == ".rocm7";
    PortTarget target = TestTarget(gfx942 ? "gfx942" : "gfx950", rocm7 ? "7.0" : "6.3");
    target.launch_calls = entry.path().stem().extension() == ".calls";
    CheckFile(entry.path(), target);
  }
  for (const PortingRule& rule : AllPortingRules()) {
    EXPECT_EQ(files.count(rule.id), 1u) << "no src/porting/testdata/" << rule.id << ".cu";
  }
}

}  // namespace
}  // namespace portolan
