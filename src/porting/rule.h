#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "porting/finding.h"
#include "porting/names.h"
#include "porting/project.h"
#include "porting/source.h"
#include "porting/target.h"

namespace portolan {

// What a rule reads.
struct RuleInput {
  const SourceFile& source;
  const ProjectFacts& project;
  const PortTarget& target;
  const HipDeclarations& declarations;  // found() is false without a ROCm installation

  // The value of the constant expression in tokens [begin, end).
  bool Constant(size_t begin, size_t end, long long* value) const {
    return EvaluateConstant(source, begin, end, project, value);
  }
  // Whether token `i` is the name `text`, spelt in code that HIP may compile and not a member of something.
  bool IsFreeName(size_t i, std::string_view text) const;
  // Whether the token is skipped: compiled by CUDA only, or never.
  bool IsDead(size_t i) const { return source.LivenessOf(i) == Liveness::kDead; }
};

// What a rule answers.
struct RuleOutput {
  std::vector<Edit> edits;
  std::vector<Finding> findings;
  std::set<std::string> compat;  // parts of the compatibility header that the edits use (compat.h)

  void Replace(const SourceFile& source, size_t token, std::string text) {
    edits.push_back({source.tokens()[token].begin, source.tokens()[token].end, std::move(text)});
  }
  void Insert(uint32_t offset, std::string text) { edits.push_back({offset, offset, std::move(text)}); }
  // Puts the declaration that ends with token `last` (a body's brace) and begins behind the declaration before it into
  // #ifndef __HIPCC__ ... #endif.
  void LeaveToCuda(const SourceFile& source, size_t name, size_t last);
  void Find(const SourceFile& source, size_t token, FindingLevel level, std::string_view kind, std::string message,
            std::string action);
};

// One way in which CUDA code is not HIP code. `apply` looks at one file and adds the edits that repair it and the
// findings that tell of it; it must not edit what it did not understand.
struct PortingRule {
  const char* id;       // also the kind of its findings
  const char* summary;  // one line, for the documentation
  void (*apply)(const RuleInput& input, RuleOutput* output);
};

// All rules, in the order in which their edits win.
const std::vector<PortingRule>& AllPortingRules();

}  // namespace portolan
