#pragma once

#include <string>

#include "units/quantity.h"

namespace portolan {

// What the machine at hand says of itself; a member is zero where it does not say.
struct HostMachine {
  int cores = 0;           // physical cores that this process may see
  Bytes memory;            // MemTotal
  Bytes private_l2;        // of one core
  Bytes last_level_cache;  // all sockets together
  std::string model;       // "AMD EPYC 9575F"
  std::string type;        // "AuthenticAMD 25/17/1": vendor, family, model, stepping; virtual machines hide the rest
};

// Reads <root>/proc/cpuinfo, <root>/proc/meminfo and <root>/sys/devices/system/cpu/cpu*/cache. `root` is "" for the
// machine at hand; tests pass a folder.
HostMachine ReadHostMachine(const std::string& root);

}  // namespace portolan
