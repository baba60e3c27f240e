#pragma once

#include <functional>
#include <string>
#include <utility>

#include "recipe/rules/rule.h"

namespace portolan {

// A change that is the context's recipe with a few fields set by `edit`.
inline Change MakeSetting(const RuleContext& context, const char* rule, std::string option, std::string what,
                          MathsClass maths, const std::function<void(Recipe&)>& edit) {
  Change change{rule, std::move(option), std::move(what), maths, context.recipe};
  edit(change.recipe);
  return change;
}

}  // namespace portolan
