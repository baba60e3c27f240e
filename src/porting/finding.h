#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "porting/source.h"

namespace portolan {

// What happens when the source is renamed to HIP and nothing else is done. Whether Portolan repairs it does not count.
enum class FindingLevel : uint8_t {
  kNote,     // information
  kWarning,  // may be wrong, or slow
  kError,    // a wrong result, or does not compile
};

const char* FindingLevelName(FindingLevel level);

struct Finding {
  std::string file;
  Position position;
  FindingLevel level = FindingLevel::kNote;
  std::string kind;     // the id of the rule that found it, or of one of its kinds
  std::string message;  // why, in the target's numbers
  std::string action;   // what `port` does, or what a human can do
};

// A replacement of the bytes [begin, end) of a source.
struct Edit {
  uint32_t begin = 0;
  uint32_t end = 0;
  std::string text;
};

// `text` with the edits made. Where two overlap, the earlier in the list wins and the other is dropped; insertions at
// one place keep their order.
std::string ApplyEdits(std::string_view text, std::vector<Edit> edits);

}  // namespace portolan
