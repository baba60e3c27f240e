#include "porting/condition.h"

#include "base/text.h"

namespace portolan {
namespace {

// Recursive descent over || && ! defined and primaries. A comparison, a sum or a call is unknown.
class Evaluator {
 public:
  Evaluator(const SourceFile& source, size_t begin, size_t end) : source_(source), at_(begin), end_(end) {}

  Truth Run() {
    const Truth value = Disjunction(0);
    return at_ == end_ ? value : Truth::kUnknown;
  }

 private:
  static constexpr int kDeepest = 64;

  bool Take(std::string_view text) {
    if (at_ >= end_ || !source_.Is(at_, text)) return false;
    ++at_;
    return true;
  }

  Truth Disjunction(int depth) {
    Truth value = Conjunction(depth);
    while (Take("||")) value = Or(value, Conjunction(depth));
    return value;
  }

  Truth Conjunction(int depth) {
    Truth value = Primary(depth);
    while (true) {
      // Anything but && || and ) makes the operand a larger expression whose value is not known here.
      while (at_ < end_ && !source_.Is(at_, "&&") && !source_.Is(at_, "||") && !source_.Is(at_, ")")) {
        value = Truth::kUnknown;
        if (source_.Is(at_, "(") && source_.Closing(at_) < end_) at_ = source_.Closing(at_);
        ++at_;
      }
      if (!Take("&&")) return value;
      value = And(value, Primary(depth));
    }
  }

  Truth Primary(int depth) {
    if (depth > kDeepest || at_ >= end_) return Truth::kUnknown;
    if (Take("!")) return Not(Primary(depth + 1));
    if (Take("(")) {
      const Truth value = Disjunction(depth + 1);
      return Take(")") ? value : Truth::kUnknown;
    }
    if (Take("defined")) {
      const bool bracket = Take("(");
      const Truth value = Defined(source_.Text(at_));
      if (at_ < end_) ++at_;
      if (bracket) Take(")");
      return value;
    }
    const std::string_view text = source_.Text(at_++);
    long long number = 0;
    if (ParseInt64(text, &number)) return number != 0 ? Truth::kTrue : Truth::kFalse;
    return Defined(text);
  }

  // The device pass defines some that the host pass does not: code under either is compiled.
  static Truth Defined(std::string_view name) {
    const bool one_pass_only = name == "__HIP_DEVICE_COMPILE__" || name == "__AMDGCN__" || name == "__AMDGPU__";
    return IsHipMacro(name) && !one_pass_only ? Truth::kTrue : Truth::kUnknown;
  }

  const SourceFile& source_;
  size_t at_;
  size_t end_;
};

}  // namespace

Truth Or(Truth a, Truth b) {
  if (a == Truth::kTrue || b == Truth::kTrue) return Truth::kTrue;
  return a == Truth::kFalse && b == Truth::kFalse ? Truth::kFalse : Truth::kUnknown;
}
Truth Not(Truth a) { return a == Truth::kUnknown ? Truth::kUnknown : a == Truth::kTrue ? Truth::kFalse : Truth::kTrue; }
Truth And(Truth a, Truth b) { return Not(Or(Not(a), Not(b))); }

Truth EvaluateForHip(const SourceFile& source, const Conditional::Branch& branch) {
  const Truth value = Evaluator(source, branch.condition, branch.directive_end).Run();
  return source.Is(branch.hash + 1, "ifndef") ? Not(value) : value;
}

}  // namespace portolan
