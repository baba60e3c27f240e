#pragma once

#include <map>
#include <string>
#include <vector>

#include "porting/verify/co_run.h"

namespace portolan {

struct SourcePlace {
  std::string file;  // relative to the program's tree; empty when nothing is known
  int line = 0;

  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

// "file:line", or "an unknown place".
std::string PlaceText(const SourcePlace& place);

// Looks up the source lines of addresses in a program with addr2line.
class CodePlaces {
 public:
  // `tree` is the folder below which the program's own sources are.
  CodePlaces(std::string program, std::string tree) : program_(std::move(program)), tree_(std::move(tree)) {}

  // Adds addresses to the next lookup: one call of addr2line serves all.
  void Want(const CodePlace& place);
  // The innermost line of the project's own sources at `place`.
  SourcePlace Find(const CodePlace& place);

 private:
  void LookUp();

  std::string program_;
  std::string tree_;
  std::map<uint64_t, std::vector<SourcePlace>> known_;  // inlined calls, innermost first
  std::vector<uint64_t> wanted_;
};

}  // namespace portolan
