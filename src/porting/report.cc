#include "porting/report.h"

#include <algorithm>
#include <map>

namespace portolan {

int CountFindings(const std::vector<Finding>& findings, FindingLevel level) {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [level](const Finding& finding) { return finding.level == level; }));
}

nlohmann::ordered_json ReportAsJson(const PortReport& report, const PortTarget& target) {
  nlohmann::ordered_json json;
  json["schema"] = "portolan.port/1";
  json["target"] = {{"gfx", target.gfx},
                    {"accelerator", target.accelerator_id},
                    {"wave_size", target.wave_size},
                    {"shared_memory_bytes", target.shared_memory_bytes},
                    {"rocm", std::to_string(target.rocm / 100) + "." + std::to_string(target.rocm % 100)}};
  json["files_read"] = report.files_read;
  json["files_changed"] = report.files_changed;
  json["names_checked_against_headers"] = report.checked_names;
  json["skipped"] = report.skipped;
  json["compatibility_parts"] = report.compat;
  std::map<std::string, int> kinds;
  for (const Finding& finding : report.findings) ++kinds[finding.kind];
  json["levels"] = {{"error", CountFindings(report.findings, FindingLevel::kError)},
                    {"warning", CountFindings(report.findings, FindingLevel::kWarning)},
                    {"note", CountFindings(report.findings, FindingLevel::kNote)}};
  json["kinds"] = kinds;
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings) {
    json["findings"].push_back({{"file", finding.file},
                                {"line", finding.position.line},
                                {"column", finding.position.column},
                                {"level", FindingLevelName(finding.level)},
                                {"kind", finding.kind},
                                {"message", finding.message},
                                {"action", finding.action}});
  }
  return json;
}

nlohmann::ordered_json ReportAsSarif(const PortReport& report, const std::string& tool_version) {
  std::map<std::string, size_t> rule_index;
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings) {
    const auto [rule, added] = rule_index.emplace(finding.kind, rule_index.size());
    if (added) {
      const auto known = std::find_if(AllPortingRules().begin(), AllPortingRules().end(),
                                      [&](const PortingRule& candidate) { return finding.kind == candidate.id; });
      rules.push_back(
          {{"id", finding.kind},
           {"shortDescription", {{"text", known == AllPortingRules().end() ? finding.kind : known->summary}}}});
    }
    results.push_back(
        {{"ruleId", finding.kind},
         {"ruleIndex", rule->second},
         {"level", FindingLevelName(finding.level)},
         {"message", {{"text", finding.message + " (" + finding.action + ")"}}},
         {"locations",
          {{{"physicalLocation",
             {{"artifactLocation", {{"uri", finding.file}}},
              {"region", {{"startLine", finding.position.line}, {"startColumn", finding.position.column}}}}}}}}});
  }
  nlohmann::ordered_json run;
  run["tool"]["driver"] = {{"name", "portolan"}, {"version", tool_version}, {"rules", rules}};
  run["results"] = results;
  nlohmann::ordered_json sarif;
  sarif["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  sarif["version"] = "2.1.0";
  sarif["runs"] = nlohmann::ordered_json::array({run});
  return sarif;
}

}  // namespace portolan
