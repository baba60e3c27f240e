#include "porting/verify/verify.h"

namespace portolan {

const char* VerifyVerdictName(VerifyVerdict verdict) {
  switch (verdict) {
    case VerifyVerdict::kAgrees:
      return "agrees";
    case VerifyVerdict::kDisagrees:
      return "disagrees";
    case VerifyVerdict::kNotRun:
      return "could not run";
  }
  return "unknown";
}

nlohmann::ordered_json VerifyReportAsJson(const VerifyReport& report, const PortTarget& target) {
  nlohmann::ordered_json json;
  json["target"] = target.gfx;
  json["verdict"] = VerifyVerdictName(report.verdict);
  if (!report.why.empty()) json["why"] = report.why;
  if (!report.why_details.empty()) json["why_details"] = report.why_details;
  json["command"] = report.command;
  json["port"] = report.port;
  json["original_lanes"] = report.wave_sizes[0];
  json["port_lanes"] = report.wave_sizes[1];
  json["launches"] = report.launches;
  json["compared_launches"] = report.compared_launches;
  json["compared_copies"] = report.compared_copies;
  json["ended"] = report.ended;
  json["largest_relative_difference"] = report.largest_relative;
  json["build_seconds"] = {report.build_seconds[0], report.build_seconds[1]};
  json["run_seconds"] = report.run_seconds;
  json["findings"] = nlohmann::ordered_json::array();
  for (const VerifyFinding& finding : report.findings) {
    nlohmann::ordered_json entry;
    entry["kind"] = finding.kind;
    entry["level"] = finding.level == VerifyLevel::kError ? "error" : "warning";
    entry["file"] = finding.place.file;
    entry["line"] = finding.place.line;
    entry["in"] = finding.in_port ? "port" : "original";
    entry["kernel"] = finding.kernel;
    entry["message"] = finding.message;
    entry["details"] = finding.details;
    json["findings"].push_back(entry);
  }
  return json;
}

}  // namespace portolan
