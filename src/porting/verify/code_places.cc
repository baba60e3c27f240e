#include "porting/verify/code_places.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"
#include "porting/process.h"

namespace portolan {

std::string PlaceText(const SourcePlace& place) {
  return place.file.empty() ? "an unknown place" : fmt::format("{}:{}", place.file, place.line);
}

void CodePlaces::Want(const CodePlace& place) {
  for (const uint64_t address : place.addresses) {
    if (known_.emplace(address, std::vector<SourcePlace>{}).second) wanted_.push_back(address);
  }
}

SourcePlace CodePlaces::Find(const CodePlace& place) {
  Want(place);
  LookUp();
  for (const uint64_t address : place.addresses) {
    for (const SourcePlace& found : known_[address]) {
      if (!found.file.empty()) return found;
    }
  }
  return {};
}

void CodePlaces::LookUp() {
  constexpr size_t kAtOnce = 1000;
  while (!wanted_.empty()) {
    std::vector<std::string> command = {"addr2line", "-a", "-i", "-e", program_};
    std::vector<uint64_t> asked;
    while (!wanted_.empty() && asked.size() < kAtOnce) {
      asked.push_back(wanted_.back());
      wanted_.pop_back();
      command.push_back(fmt::format("{:x}", asked.back() - 1));  // a return address lies behind its call
    }
    const ProcessResult run = RunProcess(command, std::chrono::seconds(60));
    std::vector<SourcePlace>* at = nullptr;
    for (const std::string& line : Split(run.output, '\n')) {
      if (line.rfind("0x", 0) == 0) {
        at = &known_[std::strtoull(line.c_str(), nullptr, 16) + 1];
        continue;
      }
      const size_t colon = line.rfind(':');
      if (at == nullptr || colon == std::string::npos) continue;
      SourcePlace place;
      if (line.rfind(tree_ + "/", 0) == 0) {
        place.file = line.substr(tree_.size() + 1, colon - tree_.size() - 1);
        place.line = std::atoi(line.c_str() + colon + 1);
      }
      at->push_back(place);
    }
  }
}

}  // namespace portolan
