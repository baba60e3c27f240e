// Functions that take other arguments in HIP, told by their number: overloads of CUDA's C++ header, parameters that a
// later CUDA dropped, and parameters that only HIP has.

#include <fmt/format.h>

#include <array>

#include "porting/rules/rules.h"

namespace portolan {
namespace {

struct Call {
  std::string_view name;
  size_t arguments;       // the call has so many
  std::string_view hip;   // "": the name is rename-api's work
  size_t behind;          // `text` goes behind this argument, 0-based
  std::string_view text;  // "" adds none
};

constexpr std::array<Call, 9> kCalls = {{
    // HIP's has no default for the flags in C.
    {"cudaMallocHost", 2, "", 1, ", hipHostMallocDefault"},
    {"cudaEventCreate", 2, "hipEventCreateWithFlags", 0, ""},
    // CUDA 12 dropped the error node and the log, which HIP's still has.
    {"cudaGraphInstantiate", 2, "hipGraphInstantiateWithFlags", 1, ", 0"},
    {"cudaGraphInstantiate", 3, "hipGraphInstantiateWithFlags", 0, ""},
    // hipSPARSE keeps the buffer of the analysis and does not read this one (6.3: library/src/amd_detail).
    {"cusparseSpSM_solve", 10, "", 9, ", nullptr"},
    {"cuOccupancyMaxPotentialBlockSize", 6, "", 0, ""},
    {"cuOccupancyMaxPotentialBlockSizeWithFlags", 7, "", 0, ""},
    // HIP asks for the release whose function is wanted.
    {"cudaGetDriverEntryPoint", 3, "hipGetProcAddress", 1, ""},
    {"cudaGetDriverEntryPoint", 4, "hipGetProcAddress", 1, ""},
}};

}  // namespace

void ApplyCallArguments(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.Text(i).substr(0, 2) != "cu" || !source.Is(i + 1, "(")) continue;
    for (const Call& call : kCalls) {
      if (!input.IsFreeName(i, call.name) || input.project.own_names.count(call.name) > 0) continue;
      const auto arguments = source.Arguments(i + 1);
      if (arguments.size() != call.arguments) continue;
      const auto insert = [&](size_t argument, std::string what) {
        output->Insert(source.tokens()[arguments[argument].second - 1].end, std::move(what));
      };
      if (call.name == "cudaGetDriverEntryPoint") {
        insert(call.behind, fmt::format(", {}", input.target.rocm));
        if (arguments.size() == 3) insert(2, ", nullptr");
        output->Find(source, i, FindingLevel::kWarning, "call-argument",
                     "the function is looked up by its name in the driver, and HIP's has another",
                     "write HIP's name of the function in the string");
      } else if (!call.text.empty()) {
        insert(call.behind, std::string(call.text));
      }
      if (call.name.substr(0, 11) == "cuOccupancy") {
        // Up to and with the comma behind it.
        output->edits.push_back(
            {source.tokens()[arguments[3].first].begin, source.tokens()[arguments[4].first].begin, ""});
        if (!source.Is(arguments[3].first, "NULL") && !source.Is(arguments[3].first, "nullptr") &&
            !source.Is(arguments[3].first, "0")) {
          output->Find(source, i, FindingLevel::kError, "call-argument",
                       "HIP asks for no function that says how much shared memory a block of a size needs",
                       "port: takes it away; give the bytes of the largest block");
        }
      }
      if (!call.hip.empty()) output->Replace(source, i, std::string(call.hip));
    }
  }
}

}  // namespace portolan
