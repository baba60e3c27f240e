#include "loop/settle_threads.h"

#include <unistd.h>

#include <cstdlib>

namespace portolan {

void SettleThreads(char** argv, ThreadPlacing placing) {
  bool changed = false;
  const auto set = [&](const char* name, const char* value) {
    changed = changed || std::getenv(name) == nullptr;
    setenv(name, value, 0);
  };
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) set("GOMP_SPINCOUNT", "20000");
  if (placing == ThreadPlacing::kOneACore) set("OMP_PROC_BIND", "true");
  if (changed) execv("/proc/self/exe", argv);  // where it fails, libgomp's own policy is what is left
}

}  // namespace portolan
