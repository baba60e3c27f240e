#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "porting/rule.h"

namespace portolan {

// Folder of a generated shim, and the header in it that holds everything but the forwarding headers.
constexpr const char* kShimFolder = "portolan_shim";
constexpr const char* kShimHeaderName = "portolan_shim.h";

// A header that stands for one of CUDA's, or that stands before one of ROCm's own of the same name.
struct ShimHeader {
  std::string hip;                // what it includes: "hip/hip_fp16.h"; "" when the shim's own header has it all
  bool next = false;              // `hip` is its own name, further down the include path
  std::set<std::string> extras;   // headers of ROCm's to include as well
  std::set<std::string> parts;    // parts of the compatibility header (compat.h) that need it
  std::set<std::string> epilogs;  // C++ behind the includes, by name (shim_headers.cc)
};

// What a project needs between its sources and HIP.
struct Shim {
  std::map<std::string, std::string, std::less<>> aliases;  // CUDA's name -> what it is defined as
  std::map<std::string, ShimHeader, std::less<>> headers;   // by the name that the project includes
  std::set<std::string, std::less<>> parts;                 // parts of the compatibility header
  std::set<std::string, std::less<>> macros;                // by name: what is defined in another way (shim_headers.cc)
  // Files that no header can help, below the project's root -> the text that is compiled in their place.
  std::map<std::string, std::string, std::less<>> copies;
  std::map<std::string, int, std::less<>> left;  // "kind in file" -> places that need a change of the source

  bool Empty() const { return aliases.empty() && headers.empty() && parts.empty() && macros.empty() && copies.empty(); }
};

// One thing that a shim must offer, and where the project first asks for it.
struct ShimNeed {
  std::string what;  // "name cudaMalloc", "header cub/cub.cuh", "part warp_shuffle", "macro __CUDA_ARCH__",
                     // "extra thrust/sort.h thrust/sequence.h": a header that another must include
  std::string file;
  Position position;
};

// Adds what one source needs, and the first place of each need that `shim` did not have yet.
void CollectShim(const RuleInput& input, Shim* shim, std::vector<ShimNeed>* needs);

// The findings of all rules for a source that stays as it is: what the shim repairs says so, the rest is left to the
// reader and counted in shim->left. Parts of the compatibility header that the rules ask for are added, and a copy of
// the source with what no header can say (PTX, the word template, operators that HIP has), if there is any. `needs` as
// above; a part that a rule asks for without a place stands at the beginning of the file.
std::vector<Finding> ShimFindings(const RuleInput& input, Shim* shim, std::vector<ShimNeed>* needs);

// Whether a finding of ShimFindings is left to the reader, and more than information.
bool IsLeft(const Finding& finding);

// Under what Shim::left counts a finding.
std::string LeftKey(const Finding& finding);

// The files of a shim, by their path below its folder. `sources` is the path from there to the project's root. Says
// nothing of paths, dates or versions of Portolan, so that the same project gives the same bytes.
std::map<std::string, std::string> ShimFiles(const Shim& shim, const PortTarget& target, const std::string& sources);

// Three of them: for Make, for CMake, and clang's -ivfsoverlay, by which it reads the copies.
std::string ShimMakefile(const Shim& shim, const PortTarget& target);
std::string ShimCmake(const Shim& shim, const PortTarget& target);
std::string ShimOverlay(const Shim& shim, const std::string& sources);

// What the shim offers whose files are `files` (as ShimFiles returns them): names, headers, parts, macros and the
// places left. Tolerates any text.
Shim ReadShim(const std::map<std::string, std::string>& files);

// Whether `text` is a file that ShimFiles made.
bool IsShimFile(std::string_view text);

// "file:line:column: why" for each thing that the project needs (`needed`, `files`, `needs`) and the shim `has` not, or
// has with another meaning, and for each finding that no shim repairs, in files that hold more of them than `has`
// lists.
std::vector<std::string> ShimLacks(const Shim& has, const Shim& needed, const std::map<std::string, std::string>& files,
                                   const std::vector<ShimNeed>& needs, const std::vector<Finding>& findings);

}  // namespace portolan
