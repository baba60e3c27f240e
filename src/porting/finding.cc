#include "porting/finding.h"

#include <algorithm>

namespace portolan {

const char* FindingLevelName(FindingLevel level) {
  switch (level) {
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kError:
      return "error";
  }
  return "";
}

std::string ApplyEdits(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  result.reserve(text.size() + text.size() / 16);
  size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text.size()) continue;
    result.append(text.substr(at, edit.begin - at));
    result.append(edit.text);
    at = edit.end;
  }
  result.append(text.substr(at));
  return result;
}

}  // namespace portolan
