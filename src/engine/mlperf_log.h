#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace portolan {

enum class MlperfEvent { kPointInTime, kIntervalStart, kIntervalEnd };
// A number that is not finite and monostate are JSON's null.
using MlperfValue = std::variant<std::monostate, int64_t, double, std::string>;

// A log in the form of MLPerf training (github.com/mlcommons/logging, mllog): a line an event, ":::MLLOG " and a JSON
// object with namespace, time_ms (since 1970), event_type, key, value and metadata. Not thread-safe.
class MlperfLog {
 public:
  // Appends to the file, so that a run that goes on keeps its log. Error: the file cannot be written.
  static Result<MlperfLog> Open(const std::string& path);
  // Flushed.
  Status Add(MlperfEvent event, const std::string& key, const MlperfValue& value,
             const std::vector<std::pair<std::string, MlperfValue>>& metadata = {});

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// The line without its end, for a given time.
std::string MlperfLine(int64_t time_ms, MlperfEvent event, const std::string& key, const MlperfValue& value,
                       const std::vector<std::pair<std::string, MlperfValue>>& metadata);

}  // namespace portolan
