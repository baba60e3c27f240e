#include "porting/condition.h"

#include "base/text.h"

namespace portolan {
namespace {

// Recursive descent over || && ! defined and primaries. A comparison, a sum or a call is unknown, except comparisons of
// sums of products of numbers and the release of CUDA's compiler.
class Evaluator {
 public:
  // `macros`: what becomes of CUDA's.
  Evaluator(const SourceFile& source, size_t begin, size_t end, CudaMacros macros)
      : source_(source), at_(begin), end_(end), macros_(macros) {}

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
    Truth value = Operand(depth);
    while (Take("&&")) value = And(value, Operand(depth));
    return value;
  }

  // Anything but && || and ) behind a primary makes it a larger expression, whose value is not known here.
  Truth Operand(int depth) {
    const bool ours = source_.Is(at_, "PORTOLAN_CUDA_ARCH");
    if (at_ + 2 < end_ && (ours || source_.Is(at_, "__CUDA_ARCH__")) &&
        (source_.Is(at_ + 1, ">") || source_.Is(at_ + 1, "<"))) {
      return Architecture(ours ? CudaMacros::kPorted : macros_);
    }
    if (const Truth release = Release(); release != Truth::kUnknown) return release;
    Truth value = Primary(depth);
    while (at_ < end_ && !source_.Is(at_, "&&") && !source_.Is(at_, "||") && !source_.Is(at_, ")")) {
      value = Truth::kUnknown;
      if (source_.Is(at_, "(") && source_.Closing(at_) < end_) at_ = source_.Closing(at_);
      ++at_;
    }
    return value;
  }

  // __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1202 and its kin; what has no such macro stays unread.
  Truth Release() {
    const size_t begin = at_;
    names_release_ = false;
    long long left = 0;
    long long right = 0;
    if (Sum(&left)) {
      std::string op(source_.Text(at_));
      if (at_ < end_ && source_.Is(at_ + 1, "=")) op += "=";
      at_ += op.size() == 2 && !source_.Is(at_, op) ? 2 : 1;
      const bool read = Sum(&right) && names_release_ &&
                        (at_ >= end_ || source_.Is(at_, "&&") || source_.Is(at_, "||") || source_.Is(at_, ")"));
      bool value = false;
      bool known = read;
      if (op == "<") {
        value = left < right;
      } else if (op == "<=") {
        value = left <= right;
      } else if (op == ">") {
        value = left > right;
      } else if (op == ">=") {
        value = left >= right;
      } else if (op == "==") {
        value = left == right;
      } else if (op == "!=") {
        value = left != right;
      } else {
        known = false;
      }
      if (known) return value ? Truth::kTrue : Truth::kFalse;
    }
    at_ = begin;
    return Truth::kUnknown;
  }

  // Products first; no brackets, of which such comparisons have none.
  bool Sum(long long* value) {
    if (!Product(value)) return false;
    while (at_ < end_ && source_.Is(at_, "+")) {
      ++at_;
      long long more = 0;
      if (!Product(&more) || __builtin_add_overflow(*value, more, value)) return false;
    }
    return true;
  }

  bool Product(long long* value) {
    if (!Number(value)) return false;
    while (at_ < end_ && source_.Is(at_, "*")) {
      ++at_;
      long long more = 0;
      if (!Number(&more) || __builtin_mul_overflow(*value, more, value)) return false;
    }
    return true;
  }

  bool Number(long long* value) {
    if (at_ >= end_) return false;
    const std::string_view text = source_.Text(at_++);
    // A port's own names have their values in a conditional that asks for HIP, too.
    const bool ported = macros_ == CudaMacros::kPorted;
    const bool major = text == "PORTOLAN_CUDACC_MAJOR" || (ported && text == "__CUDACC_VER_MAJOR__");
    const bool minor = text == "PORTOLAN_CUDACC_MINOR" || (ported && text == "__CUDACC_VER_MINOR__");
    names_release_ = names_release_ || major || minor;
    if (major || minor) *value = major ? kPortedCompilerMajor : kPortedCompilerMinor;
    return major || minor || ParseInt64(text, value);
  }

  // __CUDA_ARCH__ >= 800 and its kin. The macro is undefined; a port gives device code kPortedArchitecture instead, but
  // not in a conditional that asks for HIP as well.
  Truth Architecture(CudaMacros macros) {
    const bool less = source_.Is(at_ + 1, "<");
    at_ += source_.Is(at_ + 2, "=") ? 3 : 2;
    long long bound = 0;
    const bool number = at_ < end_ && ParseInt64(source_.Text(at_), &bound);
    if (at_ < end_) ++at_;
    if (!number) return Truth::kUnknown;
    if (macros == CudaMacros::kPorted && bound <= kPortedArchitecture) return Truth::kUnknown;  // the passes differ
    return less ? Truth::kTrue : Truth::kFalse;
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
  Truth Defined(std::string_view name) const {
    if (macros_ == CudaMacros::kUndefined && (name == "__CUDA_ARCH__" || name == "__CUDACC__" || name == "__NVCC__"))
      return Truth::kFalse;
    const bool one_pass_only = name == "__HIP_DEVICE_COMPILE__" || name == "__AMDGCN__" || name == "__AMDGPU__";
    return IsHipMacro(name) && !one_pass_only ? Truth::kTrue : Truth::kUnknown;
  }

  const SourceFile& source_;
  size_t at_;
  size_t end_;
  CudaMacros macros_;
  bool names_release_ = false;  // the expression read last has the release of CUDA's compiler in it
};

}  // namespace

Truth Or(Truth a, Truth b) {
  if (a == Truth::kTrue || b == Truth::kTrue) return Truth::kTrue;
  return a == Truth::kFalse && b == Truth::kFalse ? Truth::kFalse : Truth::kUnknown;
}
Truth Not(Truth a) { return a == Truth::kUnknown ? Truth::kUnknown : a == Truth::kTrue ? Truth::kFalse : Truth::kTrue; }
Truth And(Truth a, Truth b) { return Not(Or(Not(a), Not(b))); }

Truth EvaluateForHip(const SourceFile& source, const Conditional::Branch& branch, CudaMacros macros) {
  const Truth value = Evaluator(source, branch.condition, branch.directive_end, macros).Run();
  return source.Is(branch.hash + 1, "ifndef") ? Not(value) : value;
}

}  // namespace portolan
