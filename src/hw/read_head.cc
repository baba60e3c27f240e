#include "hw/read_head.h"

#include <algorithm>
#include <filesystem>

namespace portolan {
namespace {

constexpr size_t kMaxIdBytes = 64;

bool IsId(const std::string& id) {
  if (id.empty() || id.size() > kMaxIdBytes || id[0] < 'a' || id[0] > 'z') return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

std::string ReadHardwareId(YamlMap* map) {
  const std::string stem = std::filesystem::path(map->value().file()).stem().string();
  const std::string id = map->String("id", stem);
  if (map->ok() && !IsId(id)) {
    const std::optional<YamlValue> stated = map->Find("id");
    const YamlValue& place = stated ? *stated : map->value();
    Error error = place.MakeError(ErrorCode::kInvalidValue, "").value();
    error.field = "id";
    error.message =
        "'" + id.substr(0, kMaxIdBytes) +
        "' is not an id; accepted: lower-case letters, digits, '_', '-' and '.', beginning with a letter, at "
        "most 64 characters" +
        (stated ? "" : " (without `id` the file's name is used)");
    map->Fail(std::move(error));
  }
  return id;
}

}  // namespace portolan
