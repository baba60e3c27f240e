#include "ops/all_ops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace portolan {
namespace {

TEST(AllOps, NamesAreUniqueAndEveryFieldIsFilled) {
  std::set<std::string> names;
  for (const OpInfo& op : AllOps()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_STRNE(op.formula, "") << op.name;
    EXPECT_STRNE(op.source, "") << op.name;
    EXPECT_TRUE(std::ifstream("src/" + std::string(op.header)).good()) << op.header;
  }
  EXPECT_FALSE(names.empty());
}

TEST(AllOps, DocumentationListsEachOpAsTheTableDoes) {
  std::ifstream file("docs/ops.md");
  ASSERT_TRUE(file.good()) << "run from the source directory";
  std::stringstream text;
  text << file.rdbuf();
  for (const OpInfo& op : AllOps()) {
    const std::string row =
        "| `" + std::string(op.name) + "` | " + op.formula + " | " + op.source + " | `" + op.header + "` |";
    EXPECT_NE(text.str().find(row), std::string::npos) << "docs/ops.md lacks the line\n" << row;
  }
}

}  // namespace
}  // namespace portolan
