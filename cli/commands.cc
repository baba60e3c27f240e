#include "commands.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "loop/calibration.h"
#include "plan/gemm_times.h"

namespace portolan {

std::string BuiltInDataDirectory() {
  const char* from_environment = std::getenv("PORTOLAN_DATA");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : PORTOLAN_DATA_DIR;
}

std::vector<std::string> DataDirectories(const GlobalOptions& global) {
  std::vector<std::string> dirs = {BuiltInDataDirectory()};
  const std::string own = UserDataDirectory();
  std::error_code ignored;
  if (!own.empty() && std::filesystem::exists(own + "/accelerators", ignored)) dirs.push_back(own);
  dirs.insert(dirs.end(), global.data_dirs.begin(), global.data_dirs.end());
  return dirs;
}

Result<Catalogue> LoadCatalogue(const GlobalOptions& global) { return Catalogue::Load(DataDirectories(global)); }

Result<Catalogue> LoadPricingCatalogue(const GlobalOptions& global) {
  PORTOLAN_ASSIGN_OR_RETURN(auto times, GemmTimes::Create(DataDirectories(global)));
  SetGemmTimes(std::move(times));
  return LoadCatalogue(global);
}

Result<int64_t> ParseBatch(const char* option, const std::optional<std::string>& given) {
  constexpr double kMaxBatch = 1e12;  // as in a recipe
  if (!given) return 0;
  double number = 0;
  if (ParseDouble(*given, &number) && number >= 1 && number <= kMaxBatch && number == std::floor(number)) {
    return static_cast<int64_t>(number);
  }
  return MakeError(ErrorCode::kUsage, fmt::format("{} must be a whole number from 1 to {:g}, got '{}'", option,
                                                  kMaxBatch, given->substr(0, 40)));
}

int ReportError(const Error& error) {
  std::fprintf(stderr, "portolan: %s\n", FormatError(error).c_str());
  return ExitCode(error.code);
}

std::string WrapText(std::string_view text, int indent, int width) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string wrapped;
  std::string line;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (word.empty()) continue;
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > static_cast<size_t>(width)) {
      wrapped += margin + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) wrapped += margin + line + "\n";
  return wrapped;
}

std::string HelpText(std::string_view text) {
  constexpr int kHelpColumns = 50;  // 80 less CLI11's 30 for names
  std::string wrapped = WrapText(text, 0, kHelpColumns);
  if (!wrapped.empty()) wrapped.pop_back();
  return wrapped;
}

}  // namespace portolan
