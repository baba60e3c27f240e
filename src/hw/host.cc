#include "hw/host.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace portolan {
namespace {

constexpr int kMaxCpus = 65536;

// "key : value" -> value without leading blanks.
std::string AfterColon(const std::string& line) {
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return "";
  const size_t begin = line.find_first_not_of(" \t", colon + 1);
  return begin == std::string::npos ? "" : line.substr(begin);
}

// "key : value" -> key without blanks after it.
std::string BeforeColon(const std::string& line) {
  const std::string before = line.substr(0, line.find(':'));
  return before.substr(0, before.find_last_not_of(" \t") + 1);
}

int CountCores(const std::string& path, std::string* model, std::string* type) {
  std::ifstream stream(path);
  std::set<std::pair<std::string, std::string>> cores;
  int logical = 0;
  std::string line;
  std::string package;
  std::map<std::string, std::string> identity;  // of the first processor
  while (std::getline(stream, line)) {
    if (line.starts_with("processor")) ++logical;
    if (line.starts_with("model name") && model->empty()) *model = AfterColon(line);
    for (const char* key : {"vendor_id", "cpu family", "model", "stepping"}) {
      if (BeforeColon(line) == key) identity.emplace(key, AfterColon(line));
    }
    if (line.starts_with("physical id")) package = AfterColon(line);
    if (line.starts_with("core id")) cores.insert({package, AfterColon(line)});
  }
  if (identity.size() == 4) {
    *type = identity["vendor_id"] + " " + identity["cpu family"] + "/" + identity["model"] + "/" + identity["stepping"];
  }
  return cores.empty() ? logical : static_cast<int>(cores.size());
}

// "32768K" or "32M".
double CacheBytes(std::string text) {
  if (text.empty()) return 0;
  double factor = 1;
  if (text.back() == 'K') factor = 1024;
  if (text.back() == 'M') factor = 1024.0 * 1024;
  if (factor > 1) text.pop_back();
  double value = 0;
  return ParseDouble(text, &value) && value > 0 ? value * factor : 0;
}

std::string FirstLine(const std::string& path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

HostMachine ReadHostMachine(const std::string& root) {
  HostMachine host;
  host.cores = CountCores(root + "/proc/cpuinfo", &host.model, &host.type);

  std::ifstream meminfo(root + "/proc/meminfo");
  std::string line;
  while (std::getline(meminfo, line)) {
    if (!line.starts_with("MemTotal:")) continue;
    std::istringstream fields(AfterColon(line));
    double kib = 0;
    if (fields >> kib) host.memory = Bytes(kib * 1024);
  }

  // Caches of level 3 and above are shared: each counts once by the list of CPUs that share it.
  std::map<std::string, double> last_level;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    bool any = false;
    for (int index = 0; index < 8; ++index) {
      const std::string cache = folder + std::to_string(index);
      const std::string level = FirstLine(cache + "/level");
      if (level.empty()) continue;
      any = true;
      const double bytes = CacheBytes(FirstLine(cache + "/size"));
      if (level == "2") host.private_l2 = Bytes(std::max(host.private_l2.value, bytes));
      if (level == "3") last_level[FirstLine(cache + "/shared_cpu_list")] = bytes;
    }
    if (!any) break;
  }
  for (const auto& [cpus, bytes] : last_level) host.last_level_cache += Bytes(bytes);
  return host;
}

}  // namespace portolan
