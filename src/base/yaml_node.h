#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace portolan {

// A parsed YAML document as a tree: what YamlValue looks into. An alias shares the node of its anchor.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry {
    std::string key;
    int line = 0;
    std::shared_ptr<const YamlNode> value;
  };

  Kind kind = Kind::kNull;
  int line = 0;        // 1-based
  std::string scalar;  // as written, quotes and escapes resolved
  std::vector<std::shared_ptr<const YamlNode>> elements;
  std::vector<Entry> entries;  // in file order
  int64_t size = 1;            // nodes of the tree below and including this one, aliases expanded
  int height = 1;              // levels of that tree
};

// The tree of the one document in `text`; an empty text is a null node. Errors carry `file` and the line.
Result<std::shared_ptr<const YamlNode>> ParseYamlTree(const std::string& text, const std::string& file);

}  // namespace portolan
