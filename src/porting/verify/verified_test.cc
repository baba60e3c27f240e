#include "porting/verify/verified.h"

#include <gtest/gtest.h>

namespace portolan {
namespace {

nlohmann::json Report() {
  return nlohmann::json::parse(R"({"verdict": "disagrees", "command": "./main 4", "port": "the renamed program",
    "compared_launches": 7, "findings": [
    {"kind": "difference", "level": "error", "file": "k.cu", "line": 12, "message": "launch 1 differs",
     "details": ["buffer 1, element 96: 97 expected, 0 seen", "original: ..."]},
    {"kind": "wave-race", "level": "warning", "file": "k.cu", "line": 30, "message": "a race", "details": []},
    {"kind": "outcome", "level": "error", "file": "", "line": 0, "message": "prints something else", "details": []}]})");
}

Finding FoundAt(const char* file, int line) {
  Finding finding;
  finding.file = file;
  finding.position = {line, 5};
  finding.level = FindingLevel::kWarning;
  finding.kind = "ballot-narrowed";
  finding.message = "a ballot of 64 lanes in 32 bits";
  return finding;
}

TEST(CiteVerified, TheEvidenceGoesToTheNearestFindingOfTheStatement) {
  std::vector<Finding> findings = {FoundAt("k.cu", 9), FoundAt("k.cu", 11), FoundAt("other.cu", 12)};
  const Result<std::string> sentence = CiteVerified(Report(), &findings);
  ASSERT_TRUE(sentence);
  EXPECT_EQ(*sentence,
            "verify, the renamed program against the original on './main 4': disagrees, 7 launches compared");
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].level, FindingLevel::kWarning);  // three lines away
  EXPECT_EQ(findings[1].level, FindingLevel::kError);
  EXPECT_EQ(
      findings[1].message,
      "a ballot of 64 lanes in 32 bits; verify proved it with './main 4': launch 1 differs: buffer 1, element 96: "
      "97 expected, 0 seen");
  EXPECT_EQ(findings[2].level, FindingLevel::kWarning);
}

TEST(CiteVerified, WhatNobodyFoundByReadingIsAdded) {
  std::vector<Finding> findings;
  ASSERT_TRUE(CiteVerified(Report(), &findings));
  ASSERT_EQ(findings.size(), 1U);  // neither warnings nor what has no place
  EXPECT_EQ(findings[0].file, "k.cu");
  EXPECT_EQ(findings[0].position.line, 12);
  EXPECT_EQ(findings[0].kind, "verified");
}

TEST(CiteVerified, NamesTheFieldThatIsWrong) {
  std::vector<Finding> findings;
  nlohmann::json report = Report();
  report["findings"][0]["line"] = "12";
  const Result<std::string> wrong = CiteVerified(report, &findings);
  ASSERT_FALSE(wrong);
  EXPECT_NE(FormatError(wrong.error()).find("'line' should be a whole number"), std::string::npos);
  const Result<std::string> other = CiteVerified(nlohmann::json::array(), &findings);
  ASSERT_FALSE(other);
  EXPECT_NE(FormatError(other.error()).find("'verdict' should be a text"), std::string::npos);
}

}  // namespace
}  // namespace portolan
