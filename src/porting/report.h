#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "porting/port.h"

namespace portolan {

// {target, files_read, files_changed, skipped, compat, counts by level and kind, findings}.
nlohmann::ordered_json ReportAsJson(const PortReport& report, const PortTarget& target);

// SARIF 2.1.0 (OASIS standard, 2020): one run, the rules that have results, one result a finding with its place;
// columns count UTF-8 bytes as the source has them.
nlohmann::ordered_json ReportAsSarif(const PortReport& report, const std::string& tool_version);

int CountFindings(const std::vector<Finding>& findings, FindingLevel level);

}  // namespace portolan
