#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "loop.h"

namespace portolan {

void SettleThreads(int argc, char** argv) {
  bool computes = false, times = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    computes = computes || word == "train";
    times = times || word == "calibrate" || word == "optimize";
  }
  if (!computes && !times) return;
  bool changed = false;
  const auto set = [&](const char* name, const char* value) {
    changed = changed || std::getenv(name) == nullptr;
    setenv(name, value, 0);
  };
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) set("GOMP_SPINCOUNT", "20000");
  if (times) set("OMP_PROC_BIND", "true");
  if (changed) execv("/proc/self/exe", argv);  // where it fails, libgomp's own policy is what is left
}

}  // namespace portolan
