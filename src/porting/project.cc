#include "porting/project.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace portolan {
namespace {

bool LooksLikeVendorName(std::string_view name) {
  return name.substr(0, 2) == "cu" || name.substr(0, 2) == "CU" || name.substr(0, 2) == "__" ||
         name.substr(0, 4) == "nccl" || name == "warpSize" || name.substr(0, 4) == "tex1" ||
         name.substr(0, 4) == "tex2" || name.substr(0, 6) == "atomic" || name.substr(0, 3) == "hip" ||
         name.substr(0, 4) == "nvtx" || name.substr(0, 3) == "nv_" || name.substr(0, 11) == "make_bfloat";
}

// Words before which a name is used, not declared, although two names stand side by side.
bool IsNoType(std::string_view word) {
  constexpr std::array<std::string_view, 34> kWords = {
      "return",     "case",         "else",    "do",       "goto",     "throw",          "new",
      "delete",     "sizeof",       "enum",    "struct",   "class",    "union",          "typename",
      "const",      "static",       "extern",  "inline",   "volatile", "constexpr",      "__host__",
      "__device__", "virtual",      "friend",  "typedef",  "template", "co_return",      "__global__",
      "__inline__", "__constant__", "mutable", "register", "explicit", "__forceinline__"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// `name` stands behind a comma among the declarators of one statement: cudaError_t cudaStat1, *cudaStat2 = 0,
// cudaStat3;
bool IsFurtherDeclarator(const SourceFile& source, size_t name) {
  size_t i = name;
  while (i > 0 && (source.Is(i - 1, "*") || source.Is(i - 1, "&"))) --i;
  if (i == 0 || !source.Is(i - 1, ",")) return false;
  constexpr size_t kLongest = 400;  // tokens looked back over
  size_t start = i - 1;
  while (start > 0 && i - start < kLongest) {
    const std::string_view text = source.Text(start - 1);
    if (text == ";" || text == "{" || text == "}" || source.tokens()[start - 1].in_directive) break;
    if (text == "(" || text == "<<<") return false;  // of a call's arguments, or of parameters
    if (text == ")" || text == "]") {
      // Back over what is in brackets.
      int depth = 1;
      --start;
      while (start > 0 && depth > 0) {
        const std::string_view inner = source.Text(start - 1);
        if (inner == ")" || inner == "]") ++depth;
        if (inner == "(" || inner == "[") --depth;
        --start;
      }
      continue;
    }
    --start;
  }
  while (start < name && (source.Is(start, "const") || source.Is(start, "static"))) ++start;
  if (!source.IsIdentifier(start) || IsNoType(source.Text(start))) return false;
  size_t first = start + 1;
  while (source.Is(first, "*")) ++first;
  return source.IsIdentifier(first) && first < name;
}

bool Declares(const SourceFile& source, size_t name) {
  if (name == 0 || source.tokens()[name - 1].in_directive != source.tokens()[name].in_directive) return false;
  const std::string_view next = source.Text(name + 1);
  const std::string_view before = source.Text(name - 1);
  if (before == ")" && next == "(") {
    // void __launch_bounds__(256) name(...): the attribute belongs to the name.
    size_t open = name - 1;
    for (int depth = 0; open > 0; --open) {
      if (source.Is(open, ")")) ++depth;
      if (source.Is(open, "(") && --depth == 0) break;
    }
    if (open < 2 || (!source.Is(open - 1, "__launch_bounds__") && !source.Is(open - 1, "__attribute__"))) return false;
    const size_t close = source.Closing(name + 1);
    return source.Is(close + 1, "{");
  }
  if (before == "struct" || before == "class" || before == "namespace")
    return next == "{" || next == ":" || next == ";";
  if (next != "=" && next != ";" && next != "," && next != ")" && next != "[" && next != "(" && next != "{") {
    return false;
  }
  if (source.IsIdentifier(name - 1)) {
    if (IsNoType(before)) return false;
    // TYPE name(...) is a definition only with a body: CHECKED cudaMalloc(&p, n); is a call behind a macro.
    if (next != "(") return true;
    const size_t close = source.Closing(name + 1);
    return source.Is(close + 1, "{") || (source.Is(close + 1, "const") && source.Is(close + 2, "{"));
  }
  if ((before == "," || before == "*") && next != "(" && next != "{" && IsFurtherDeclarator(source, name)) return true;
  // TYPE *name, at the start of a statement or parameter.
  if (before != "*" || name < 3 || !source.IsIdentifier(name - 2)) return false;
  const std::string_view start = source.Text(name - 3);
  return start == ";" || start == "{" || start == "}" || start == "(" || start == "," || start == "const" ||
         start == "static" || start == "unsigned" || start == "__device__" || start == "__constant__";
}

void AddConstant(std::string_view name, long long value, ProjectFacts* facts) {
  if (facts->ambiguous_constants.count(name) > 0) return;
  const auto [it, added] = facts->constants.emplace(std::string(name), value);
  if (!added && it->second != value) {
    facts->constants.erase(it);
    facts->ambiguous_constants.emplace(name);
  }
}

// A sum of products of shifts over literals and constants, by precedence climbing.
class ConstantEvaluator {
 public:
  ConstantEvaluator(const SourceFile& source, size_t begin, size_t end, const ProjectFacts& facts)
      : source_(source), at_(begin), end_(end), facts_(facts) {}

  bool Run(long long* value) { return Binary(0, 0, value) && at_ == end_; }

 private:
  static int Precedence(std::string_view op) {
    if (op == "*" || op == "/" || op == "%") return 3;
    if (op == "+" || op == "-") return 2;
    if (op == "<<" || op == ">") return 1;
    return 0;
  }

  static bool Apply(std::string_view op, long long b, long long* a) {
    if (op == "*") return !__builtin_mul_overflow(*a, b, a);
    if (op == "+") return !__builtin_add_overflow(*a, b, a);
    if (op == "-") return !__builtin_sub_overflow(*a, b, a);
    if (op == "/" || op == "%") {
      if (b <= 0) return false;
      *a = op == "/" ? *a / b : *a % b;
      return true;
    }
    if (b < 0 || b > 31 || *a < 0 || *a > 0xffffffffLL) return false;
    *a = op == "<<" ? *a << b : *a >> b;
    return true;
  }

  bool Primary(int depth, long long* value) {
    if (at_ >= end_ || depth > 50) return false;
    if (source_.Is(at_, "(")) {
      const size_t close = source_.Closing(at_);
      if (close >= end_) return false;
      ++at_;
      if (!Binary(0, depth + 1, value) || at_ != close) return false;
      ++at_;
      return true;
    }
    const Token& token = source_.tokens()[at_];
    const std::string_view text = source_.Text(at_++);
    if (token.kind == TokenKind::kNumber) {
      unsigned long long literal = 0;
      if (!ParseIntegerLiteral(text, &literal) || literal > 0x7fffffffffffffffULL) return false;
      *value = static_cast<long long>(literal);
      return true;
    }
    const auto constant = facts_.constants.find(text);
    if (token.kind != TokenKind::kIdentifier || constant == facts_.constants.end()) return false;
    *value = constant->second;
    return true;
  }

  bool Binary(int lowest, int depth, long long* value) {
    if (!Primary(depth, value)) return false;
    while (at_ < end_) {
      const std::string_view op = source_.Text(at_);
      const int precedence = Precedence(op);
      if (precedence == 0 || precedence <= lowest) return true;
      at_ += op == ">" ? 2 : 1;  // >> is two tokens
      if (op == ">" && !source_.Is(at_ - 1, ">")) return false;
      long long right = 0;
      if (!Binary(precedence, depth + 1, &right) || !Apply(op, right, value)) return false;
    }
    return true;
  }

  const SourceFile& source_;
  size_t at_;
  size_t end_;
  const ProjectFacts& facts_;
};

}  // namespace

bool ParseIntegerLiteral(std::string_view text, unsigned long long* value) {
  std::string digits;
  for (const char c : text) {
    if (c != '\'') digits.push_back(c);
  }
  while (!digits.empty() &&
         (digits.back() == 'u' || digits.back() == 'U' || digits.back() == 'l' || digits.back() == 'L')) {
    digits.pop_back();
  }
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return false;
  const bool binary = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
  errno = 0;
  char* end = nullptr;
  *value = std::strtoull(digits.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
  return errno == 0 && *end == '\0';
}

bool EvaluateConstant(const SourceFile& source, size_t begin, size_t end, const ProjectFacts& facts, long long* value) {
  return begin < end && end <= source.size() && ConstantEvaluator(source, begin, end, facts).Run(value);
}

size_t LaunchedName(const SourceFile& source, size_t chevrons) {
  if (chevrons == 0) return source.size();
  size_t name = chevrons - 1;
  if (!source.Is(name, ">")) return name;
  constexpr size_t kLongest = 100;  // tokens of template arguments
  int depth = 0;
  while (name > 0 && chevrons - name < kLongest) {
    if (source.Is(name, ">")) ++depth;
    if (source.Is(name, "<") && --depth == 0) break;
    --name;
  }
  return name > 0 ? name - 1 : source.size();
}

void CollectFacts(const SourceFile& source, ProjectFacts* facts) {
  for (const DeviceFunction& function : source.device_functions()) {
    if (function.is_kernel) facts->kernels.insert(function.name);
  }
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || source.LivenessOf(i) == Liveness::kDead) continue;
    const std::string_view name = source.Text(i);
    if (i >= 2 && source.Is(i - 1, "ifndef") && source.tokens()[i - 2].kind == TokenKind::kHash) {
      facts->defaults.emplace(name);
      continue;
    }
    if (i >= 2 && source.Is(i - 1, "define") && source.tokens()[i - 2].kind == TokenKind::kHash) {
      if (LooksLikeVendorName(name)) facts->own_names.emplace(name);
      size_t end = i + 1;
      while (end < source.size() && source.tokens()[end].kind != TokenKind::kDirectiveEnd) ++end;
      const bool function_like = source.Is(i + 1, "(") && source.tokens()[i + 1].begin == source.tokens()[i].end;
      long long value = 0;
      if (!function_like && EvaluateConstant(source, i + 1, end, *facts, &value)) {
        AddConstant(name, value, facts);
        facts->macros.emplace(name);
      }
      continue;
    }
    if (LooksLikeVendorName(name) && Declares(source, i)) facts->own_names.emplace(name);
    // const int kName = 32; and the like, in any scope: two values in a project make a name ambiguous.
    if (source.Is(i + 1, "=") && !source.Is(i + 2, "=") && i >= 2 && source.IsIdentifier(i - 1)) {
      bool constant = false;
      for (size_t back = i; back > 0 && i - back < 6 && source.IsIdentifier(back - 1); --back) {
        const std::string_view word = source.Text(back - 1);
        constant = constant || word == "const" || word == "constexpr";
      }
      size_t end = i + 2;
      while (end < source.size() && end < i + 40 && !source.Is(end, ";") && !source.Is(end, ",")) ++end;
      long long value = 0;
      if (constant && EvaluateConstant(source, i + 2, end, *facts, &value)) AddConstant(name, value, facts);
    }
  }
}

namespace {

// Whether every declaration of `name` in the file is of a constant, and there is one: a constant of another file or
// scope may share its name with a variable here.
bool IsConstantHere(const SourceFile& source, std::string_view name) {
  bool declared = false;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || !source.Is(i, name)) continue;
    const std::string_view next = source.Text(i + 1);
    const std::string_view before = source.Text(i - 1);
    const bool assigned = next == "=" && !source.Is(i + 2, "=");
    const bool declares = source.IsIdentifier(i - 1) && !IsNoType(before) &&
                          (next == "=" || next == ";" || next == "," || next == ")" || next == "(" || next == "{");
    if (!declares && !assigned && before != "&" && before != "*") continue;
    bool constant = false;
    for (size_t back = i; back > 0 && i - back < 6 && source.IsIdentifier(back - 1); --back) {
      constant = constant || source.Is(back - 1, "const") || source.Is(back - 1, "constexpr");
    }
    // As a parameter or without a value, const says nothing of what it is.
    if (!constant || next != "=") return false;
    declared = true;
  }
  return declared;
}

// The value of [begin, end) when it is the same in every scope and no build can change it.
bool FixedValue(const SourceFile& source, size_t begin, size_t end, const ProjectFacts& facts, long long* value) {
  for (size_t i = begin; i < end; ++i) {
    if (!source.IsIdentifier(i)) continue;
    const std::string_view name = source.Text(i);
    if (facts.defaults.count(name) > 0) return false;
    if (facts.macros.count(name) == 0 && !IsConstantHere(source, name)) return false;
  }
  return EvaluateConstant(source, begin, end, facts, value);
}

// The product of the sides in the brackets at `open`: dim3(16, 16); 0 when one is not known.
long long Product(const SourceFile& source, size_t open, const ProjectFacts& facts) {
  const auto sides = source.Arguments(open);
  if (sides.empty() || sides.size() > 3) return 0;
  long long product = 1;
  for (const auto& [begin, end] : sides) {
    long long side = 0;
    if (!FixedValue(source, begin, end, facts, &side) || side <= 0 || side > 1024) return 0;
    product *= side;
  }
  return product;
}

// Variables declared as dim3 block(16, 16) or dim3 block = dim3(16, 16), with their product; 0 for a name that is
// declared twice with different ones, is assigned to or has an unknown side.
std::map<std::string_view, long long> BlockVariables(const SourceFile& source, const ProjectFacts& facts) {
  std::map<std::string_view, long long> variables;
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i)) continue;
    const bool declared = source.Is(i - 1, "dim3");
    if (declared) {
      size_t open = i + 1;
      if (source.Is(open, "=") && source.Is(open + 1, "dim3")) open += 2;
      const bool bracket = source.Is(open, "(") || source.Is(open, "{");
      const long long product = bracket ? Product(source, open, facts) : 0;
      const auto [it, added] = variables.emplace(source.Text(i), product);
      if (!added && it->second != product) it->second = 0;
      continue;
    }
    const auto known = variables.find(source.Text(i));
    if (known == variables.end()) continue;
    const bool member = source.Is(i + 1, ".") && source.Is(i + 3, "=") && !source.Is(i + 4, "=");
    const bool address = source.Is(i - 1, "&");
    if ((source.Is(i + 1, "=") && !source.Is(i + 2, "=")) || member || address) known->second = 0;
  }
  return variables;
}

// The threads of the block argument [begin, end) of a launch; 0 when they are not known.
long long Threads(const SourceFile& source, size_t begin, size_t end, const ProjectFacts& facts,
                  const std::map<std::string_view, long long>& variables) {
  long long threads = 0;
  if (FixedValue(source, begin, end, facts, &threads)) return threads;
  if (source.Is(begin, "dim3") && source.Is(begin + 1, "(") && source.Closing(begin + 1) + 1 == end) {
    return Product(source, begin + 1, facts);
  }
  const auto variable = end == begin + 1 ? variables.find(source.Text(begin)) : variables.end();
  return variable != variables.end() ? variable->second : 0;
}

}  // namespace

void CollectLaunches(const SourceFile& source, ProjectFacts* facts) {
  const std::map<std::string_view, long long> variables = BlockVariables(source, *facts);
  std::set<size_t> launches;  // tokens of the kernels' names there
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.Is(i, "<<<") || source.tokens()[i].kind != TokenKind::kPunctuator) continue;
    const size_t name = LaunchedName(source, i);
    if (!source.IsIdentifier(name)) continue;
    launches.insert(name);
    size_t begin = i + 1;
    int argument = 0;
    size_t at = i + 1;
    long long threads = 0;
    for (; at < source.size() && at < i + 300; ++at) {
      const std::string_view text = source.Text(at);
      const bool ends = text == ">" && source.Is(at + 1, ">") && source.Is(at + 2, ">");
      if (text == "," || ends) {
        if (argument == 1) threads = Threads(source, begin, at, *facts, variables);
        ++argument;
        begin = at + 1;
      }
      if (ends || text == ";") break;
      if (text == "(" || text == "[" || text == "{") at = source.Closing(at);
    }
    facts->launched_blocks[std::string(source.Text(name))].insert(threads);
  }
  // A kernel that is named otherwise than in a launch or a declaration may be launched with any size.
  for (size_t i = 1; i < source.size(); ++i) {
    if (!source.IsIdentifier(i) || facts->kernels.count(source.Text(i)) == 0 || launches.count(i) > 0) continue;
    if (source.Is(i - 1, ".") || source.Is(i - 1, "->")) continue;
    const bool declaration = source.Is(i + 1, "(") && (source.IsIdentifier(i - 1) || source.Is(i - 1, ")"));
    if (!declaration) facts->launched_blocks[std::string(source.Text(i))].insert(0);
  }
}

}  // namespace portolan
