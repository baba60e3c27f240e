#pragma once

#include <string>
#include <vector>

#include "base/yaml.h"

namespace portolan {

// A row of an enumeration's name table. The first name of a value is the one printed.
template <typename Enum>
struct NamedValue {
  const char* name;
  Enum value;
};

// The value of `key` by its name in the table, or `fallback` when absent; other names are refused with the list.
template <typename Enum, size_t kCount>
Enum ReadEnum(YamlMap& map, const std::string& key, const NamedValue<Enum> (&values)[kCount], Enum fallback) {
  std::vector<std::string> names;
  std::string fallback_name;
  for (const NamedValue<Enum>& row : values) {
    names.emplace_back(row.name);
    if (row.value == fallback && fallback_name.empty()) fallback_name = row.name;
  }
  const std::string name = map.OneOf(key, names, fallback_name);
  for (const NamedValue<Enum>& row : values) {
    if (name == row.name) return row.value;
  }
  return fallback;
}

template <typename Enum, size_t kCount>
const char* EnumName(const NamedValue<Enum> (&values)[kCount], Enum value) {
  for (const NamedValue<Enum>& row : values) {
    if (row.value == value) return row.name;
  }
  return "?";
}

}  // namespace portolan
