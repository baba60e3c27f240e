#pragma once

#include <span>

namespace portolan {

// One op kind, for listings and for docs/ops.md (a test holds the two together).
struct OpInfo {
  const char* name;     // lower case, words joined by '_'
  const char* formula;  // of the forward work, or of the only pass
  const char* source;   // where the formula comes from
  const char* header;   // below src/
};

// Every op kind that Portolan counts, one line each in all_ops.cc.
std::span<const OpInfo> AllOps();

}  // namespace portolan
