#include <string_view>

#include "loop.h"
#include "loop/settle_threads.h"

namespace portolan {

void SettleThreadsFor(int argc, char** argv) {
  bool computes = false, times = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    computes = computes || word == "train";
    times = times || word == "calibrate" || word == "optimize";
  }
  if (computes || times) SettleThreads(argv, times ? ThreadPlacing::kOneACore : ThreadPlacing::kFree);
}

}  // namespace portolan
