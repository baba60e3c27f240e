#include "engine/mlperf_log.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace portolan {
namespace {

const char* EventName(MlperfEvent event) {
  switch (event) {
    case MlperfEvent::kPointInTime:
      return "POINT_IN_TIME";
    case MlperfEvent::kIntervalStart:
      return "INTERVAL_START";
    case MlperfEvent::kIntervalEnd:
      return "INTERVAL_END";
  }
  return "";
}

nlohmann::ordered_json Json(const MlperfValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value); number != nullptr && std::isfinite(*number)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

tl::unexpected<Error> WriteError(const std::string& path) {
  return tl::make_unexpected(
      Error{ErrorCode::kIo, std::string("cannot be written: ") + std::strerror(errno), path, 0, {}});
}

}  // namespace

std::string MlperfLine(int64_t time_ms, MlperfEvent event, const std::string& key, const MlperfValue& value,
                       const std::vector<std::pair<std::string, MlperfValue>>& metadata) {
  nlohmann::ordered_json line;
  line["namespace"] = "";
  line["time_ms"] = time_ms;
  line["event_type"] = EventName(event);
  line["key"] = key;
  line["value"] = Json(value);
  line["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [name, one] : metadata) line["metadata"][name] = Json(one);
  return ":::MLLOG " + line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<MlperfLog> MlperfLog::Open(const std::string& path) {
  MlperfLog log;
  log.path_ = path;
  log.file_.reset(std::fopen(path.c_str(), "ae"));
  if (log.file_ == nullptr) return WriteError(path);
  return log;
}

Status MlperfLog::Add(MlperfEvent event, const std::string& key, const MlperfValue& value,
                      const std::vector<std::pair<std::string, MlperfValue>>& metadata) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::string line = MlperfLine(time_ms, event, key, value, metadata) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) {
    return WriteError(path_);
  }
  return {};
}

}  // namespace portolan
