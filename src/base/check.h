#pragma once

namespace portolan {

[[noreturn]] void CheckFailed(const char* condition, const char* message, const char* file, int line);

}  // namespace portolan

// For our own bugs only: never reachable from user input. Prints and aborts.
#define PORTOLAN_CHECK(condition, message)                              \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ::portolan::CheckFailed(#condition, message, __FILE__, __LINE__); \
    }                                                                   \
  } while (false)
