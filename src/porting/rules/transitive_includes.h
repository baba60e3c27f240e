#pragma once

#include <set>
#include <string>

#include "porting/rule.h"

namespace portolan {

// Thrust's headers that the source includes some of and names more of than it includes, as "<thrust/sort.h>".
struct ThrustIncludes {
  size_t first = 0;               // token of the first one's #; the number of tokens when it includes none
  std::set<std::string> missing;  // empty when it includes none
};

ThrustIncludes FindThrustIncludes(const RuleInput& input);

}  // namespace portolan
