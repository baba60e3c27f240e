#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hw/catalogue.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace portolan {

// What a change does to the numbers that training computes.
enum class MathsClass {
  kExact,         // the same values, bit for bit, up to the order in which devices add
  kReassociates,  // the same formula, rounded or summed in another order
  kChangesMaths,  // another formula or a coarser format: quality must be checked; only when allowed by name
};
const char* MathsClassName(MathsClass maths);

// One revision that a rule proposes. `recipe` is the whole revised recipe; nothing is priced here.
struct Change {
  std::string rule;    // "index_dedup"
  std::string option;  // the value it sets, "before_exchange"
  std::string what;    // one sentence for the ledger
  MathsClass maths = MathsClass::kExact;
  Recipe recipe;
};

struct RuleContext {
  const Model& model;  // the original: structure changes of `recipe` are not applied
  const Recipe& recipe;
  const Cluster& cluster;
};

// One rule: one file of this folder and one line in all_rules.cc.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual const char* name() const = 0;
  // A published gain that the rule resembles, with its source; "" when none is known.
  virtual const char* published() const { return ""; }
  // All settings other than the current one that apply here, in order of trial. Empty: *why_not says why.
  virtual std::vector<Change> Propose(const RuleContext& context, std::string* why_not) const = 0;
  // Whether the rule revises the model, and so may stand under a recipe's `structure`.
  virtual bool RevisesStructure() const { return false; }
  // Structure rules only: revises the model. Errors name what does not apply. Names of tables stay as they are.
  virtual Status Apply(const StructureChange& change, Model* model) const;
};

// The ordered list.
const std::vector<std::unique_ptr<Rule>>& AllRules();

// Names of the rules that may stand under a recipe's `structure`.
std::vector<std::string> StructureRuleNames();

// The model after recipe.structure, or an error that names the entry.
Result<Model> ApplyStructure(const Model& model, const Recipe& recipe);

}  // namespace portolan
