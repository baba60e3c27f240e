// Thrust's headers include one another differently at each vendor: a program that gets thrust::sequence through another
// header of CUDA's does not get it from rocThrust. A file that includes some of Thrust gets what it names.

#include "porting/rules/transitive_includes.h"

#include <array>

#include "porting/rules/rules.h"

namespace portolan {

ThrustIncludes FindThrustIncludes(const RuleInput& input) {
  struct Name {
    std::string_view name;
    std::string_view header;
  };
  constexpr std::array<Name, 37> kNames = {{{"sequence", "sequence"},
                                            {"sort", "sort"},
                                            {"sort_by_key", "sort"},
                                            {"stable_sort", "sort"},
                                            {"stable_sort_by_key", "sort"},
                                            {"reduce", "reduce"},
                                            {"reduce_by_key", "reduce"},
                                            {"transform", "transform"},
                                            {"transform_reduce", "transform_reduce"},
                                            {"copy", "copy"},
                                            {"copy_if", "copy"},
                                            {"fill", "fill"},
                                            {"inclusive_scan", "scan"},
                                            {"exclusive_scan", "scan"},
                                            {"exclusive_scan_by_key", "scan"},
                                            {"unique", "unique"},
                                            {"unique_by_key", "unique"},
                                            {"count", "count"},
                                            {"count_if", "count"},
                                            {"for_each", "for_each"},
                                            {"gather", "gather"},
                                            {"scatter", "scatter"},
                                            {"remove", "remove"},
                                            {"remove_if", "remove"},
                                            {"min_element", "extrema"},
                                            {"max_element", "extrema"},
                                            {"device_ptr", "device_ptr"},
                                            {"device_pointer_cast", "device_ptr"},
                                            {"device_vector", "device_vector"},
                                            {"host_vector", "host_vector"},
                                            {"make_zip_iterator", "iterator/zip_iterator"},
                                            {"make_tuple", "tuple"},
                                            {"lower_bound", "binary_search"},
                                            {"upper_bound", "binary_search"},
                                            {"partition", "partition"},
                                            {"adjacent_difference", "adjacent_difference"},
                                            {"inner_product", "inner_product"}}};
  const SourceFile& source = input.source;
  ThrustIncludes result;
  result.first = source.size();
  std::set<std::string> included;
  for (size_t i = 2; i < source.size(); ++i) {
    if (input.IsDead(i)) continue;
    const std::string_view text = source.Text(i);
    if (source.tokens()[i].kind == TokenKind::kHeaderName && text.substr(0, 8) == "<thrust/") {
      if (result.first == source.size()) result.first = i - 2;
      included.emplace(text);
    } else if (source.IsIdentifier(i) && source.Is(i - 1, "::") && source.Is(i - 2, "thrust")) {
      for (const Name& name : kNames) {
        if (text == name.name) result.missing.insert("<thrust/" + std::string(name.header) + ".h>");
      }
    }
  }
  if (result.first == source.size()) result.missing.clear();
  for (const std::string& header : included) result.missing.erase(header);
  return result;
}

void ApplyTransitiveIncludes(const RuleInput& input, RuleOutput* output) {
  const ThrustIncludes includes = FindThrustIncludes(input);
  std::string lines;
  for (const std::string& header : includes.missing) lines += "#include " + header + "\n";
  if (!lines.empty()) output->Insert(input.source.tokens()[includes.first].begin, lines);
}

}  // namespace portolan
