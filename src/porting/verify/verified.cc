#include "porting/verify/verified.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace portolan {
namespace {

constexpr int kNear = 2;  // lines: a statement is seldom longer

struct Seen {
  std::string kind;
  std::string level;
  std::string file;
  int line = 0;
  std::string text;  // message and first detail
};

template <typename T>
Result<T> Field(const nlohmann::json& object, const char* name, bool (nlohmann::json::*is)() const noexcept,
                const char* type) {
  const auto found = object.find(name);
  if (!object.is_object() || found == object.end() || !(*found.*is)()) {
    return MakeError(ErrorCode::kParse,
                     fmt::format("'{}' should be {}: this is no report of `portolan --json FILE verify`", name, type));
  }
  return found->get<T>();
}

Result<std::string> TextField(const nlohmann::json& object, const char* name) {
  return Field<std::string>(object, name, &nlohmann::json::is_string, "a text");
}

Result<Seen> ReadFinding(const nlohmann::json& entry) {
  Seen seen;
  PORTOLAN_ASSIGN_OR_RETURN(seen.kind, TextField(entry, "kind"));
  PORTOLAN_ASSIGN_OR_RETURN(seen.level, TextField(entry, "level"));
  PORTOLAN_ASSIGN_OR_RETURN(seen.file, TextField(entry, "file"));
  PORTOLAN_ASSIGN_OR_RETURN(seen.line, Field<int>(entry, "line", &nlohmann::json::is_number_integer, "a whole number"));
  PORTOLAN_ASSIGN_OR_RETURN(seen.text, TextField(entry, "message"));
  const auto details = entry.find("details");
  if (details != entry.end() && details->is_array() && !details->empty() && details->front().is_string()) {
    seen.text += ": " + details->front().get<std::string>();
  }
  return seen;
}

}  // namespace

Result<std::string> CiteVerified(const nlohmann::json& report, std::vector<Finding>* findings) {
  PORTOLAN_ASSIGN_OR_RETURN(const std::string verdict, TextField(report, "verdict"));
  PORTOLAN_ASSIGN_OR_RETURN(const std::string command, TextField(report, "command"));
  PORTOLAN_ASSIGN_OR_RETURN(const std::string port, TextField(report, "port"));
  PORTOLAN_ASSIGN_OR_RETURN(const auto launches, Field<int64_t>(report, "compared_launches",
                                                                &nlohmann::json::is_number_integer, "a whole number"));
  const auto entries = report.find("findings");
  if (entries == report.end() || !entries->is_array()) {
    return MakeError(ErrorCode::kParse,
                     "'findings' should be a list: this is no report of `portolan --json FILE verify`");
  }
  for (const nlohmann::json& entry : *entries) {
    PORTOLAN_ASSIGN_OR_RETURN(const Seen seen, ReadFinding(entry));
    if (seen.level != "error" || seen.file.empty()) continue;
    Finding* nearest = nullptr;
    for (Finding& finding : *findings) {
      const int distance = std::abs(finding.position.line - seen.line);
      if (finding.file != seen.file || distance > kNear) continue;
      if (nearest == nullptr || distance < std::abs(nearest->position.line - seen.line)) {
        nearest = &finding;
      }
    }
    if (nearest != nullptr) {
      nearest->level = FindingLevel::kError;
      nearest->message += fmt::format("; verify proved it with '{}': {}", command, seen.text);
      continue;
    }
    Finding added;
    added.file = seen.file;
    added.position.line = seen.line;
    added.position.column = 1;
    added.level = FindingLevel::kError;
    added.kind = "verified";
    added.message = fmt::format("{} ({})", seen.text, seen.kind);
    added.action = fmt::format("seen by verify, which ran '{}'", command);
    findings->push_back(std::move(added));
  }
  return fmt::format("verify, {} against the original on '{}': {}, {} launches compared", port, command, verdict,
                     launches);
}

}  // namespace portolan
