#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace portolan {

void CheckFailed(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: %s (%s)\nThis is a bug in Portolan; please report it.\n", file, line,
               message, condition);
  std::abort();
}

}  // namespace portolan
