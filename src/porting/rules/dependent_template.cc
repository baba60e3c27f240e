// Cast<T>::apply<N>(x) inside a template needs the word template before apply; nvcc does without, clang does not.

#include "porting/rules/rules.h"

namespace portolan {

void ApplyDependentTemplate(const RuleInput& input, RuleOutput* output) {
  const SourceFile& source = input.source;
  std::set<std::string_view> parameters;
  bool collected = false;
  for (size_t i = 1; i < source.size(); ++i) {
    // NAME < ... > :: name < ... > (
    if (!source.Is(i, "<") || !source.IsIdentifier(i - 1) || input.IsDead(i)) continue;
    const size_t close = source.ClosingAngle(i);
    if (close == source.size() || !source.Is(close + 1, "::") || !source.IsIdentifier(close + 2)) continue;
    if (source.Is(close + 2, "template") || !source.Is(close + 3, "<")) continue;
    const size_t inner = source.ClosingAngle(close + 3);
    if (inner == source.size() || !source.Is(inner + 1, "(")) continue;
    if (!collected) parameters = TemplateParameters(source);
    collected = true;
    bool dependent = false;
    for (size_t t = i + 1; t < close; ++t) dependent = dependent || parameters.count(source.Text(t)) > 0;
    // A definition out of its class (void A<T>::f<3>(...) {}) is a specialisation, without the word.
    const std::string_view before = source.Text(i - 2);
    const bool expression = before == ";" || before == "{" || before == "}" || before == "=" || before == "(" ||
                            before == "," || before == "return" || before == ")";
    if (!dependent || !expression) continue;
    output->Insert(source.tokens()[close + 2].begin, "template ");
    output->Find(source, close + 2, FindingLevel::kError, "dependent-template",
                 "clang takes this < for a comparison: the name depends on a template parameter",
                 "port: writes template before the name");
  }
}

}  // namespace portolan
