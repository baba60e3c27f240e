#include "porting/source.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "porting/condition.h"

namespace portolan {

SourceFile::SourceFile(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)), tokens_(Lex(text_)) {
  line_starts_.push_back(0);
  for (size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1)) {
    line_starts_.push_back(static_cast<uint32_t>(at + 1));
  }
  MatchBrackets();
  FindConditionals();
  FindDeviceFunctions();
}

Position SourceFile::PositionOf(size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), static_cast<uint32_t>(offset));
  const auto line = static_cast<size_t>(after - line_starts_.begin());
  const size_t mark = line == 1 && text_.compare(0, 3, "\xEF\xBB\xBF") == 0 && offset >= 3 ? 3 : 0;
  return {static_cast<int>(line), static_cast<int>(offset - line_starts_[line - 1] - mark) + 1};
}

void SourceFile::MatchBrackets() {
  closing_.assign(tokens_.size(), 0);
  std::vector<uint32_t> outside;  // open brackets of the code
  std::vector<uint32_t> inside;   // open brackets of the directive at hand: a macro may hold half a pair
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].kind == TokenKind::kHash) inside.clear();
    if (tokens_[i].kind != TokenKind::kPunctuator) continue;
    std::vector<uint32_t>& open = tokens_[i].in_directive ? inside : outside;
    const char c = text_[tokens_[i].begin];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(i);
    } else if (c == ')' || c == ']' || c == '}') {
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      // A } also closes what was left open inside its block (code broken over #if branches); others must match.
      while (c == '}' && !open.empty() && text_[tokens_[open.back()].begin] != '{') open.pop_back();
      if (!open.empty() && text_[tokens_[open.back()].begin] == wanted) {
        closing_[open.back()] = i;
        open.pop_back();
      }
    }
  }
}

size_t SourceFile::ClosingAngle(size_t open) const {
  constexpr size_t kLongest = 200;  // tokens; a longer list is not a template argument list worth recognising
  int depth = 0;
  for (size_t i = open; i < tokens_.size() && i < open + kLongest; ++i) {
    const std::string_view text = Text(i);
    if (text == "<") {
      ++depth;
    } else if (text == ">") {
      if (--depth == 0) return i;
    } else if (text == "(" || text == "[") {
      i = Closing(i);
    } else if (text == ";" || text == "{" || text == "}" || text == ")" || text == "]" || text == "&&" ||
               text == "||" || text == "<<<" || text == "=" || tokens_[i].kind == TokenKind::kDirectiveEnd) {
      return size();
    }
  }
  return size();
}

std::vector<std::pair<size_t, size_t>> SourceFile::Arguments(size_t open) const {
  std::vector<std::pair<size_t, size_t>> arguments;
  const size_t close = Closing(open);
  if (close == size() || close == open + 1) return arguments;
  size_t begin = open + 1;
  for (size_t i = open + 1; i < close; ++i) {
    const std::string_view text = Text(i);
    if (text == "(" || text == "[" || text == "{") {
      i = std::min(Closing(i), close);
    } else if (text == "<" && IsIdentifier(i - 1)) {
      const size_t angle = ClosingAngle(i);
      const std::string_view next = Text(angle + 1);
      if (angle < close && (next == "(" || next == ")" || next == "," || next == "::" || next == "{" || next == ">")) {
        i = angle;
      }
    } else if (text == ",") {
      arguments.emplace_back(begin, i);
      begin = i + 1;
    }
  }
  arguments.emplace_back(begin, close);
  return arguments;
}

std::string_view SourceFile::Range(size_t begin, size_t end) const {
  if (begin >= end || end > tokens_.size()) return {};
  return std::string_view(text_).substr(tokens_[begin].begin, tokens_[end - 1].end - tokens_[begin].begin);
}

void SourceFile::FindConditionals() {
  liveness_.assign(tokens_.size(), Liveness::kUnknown);
  std::vector<size_t> open;  // indices into conditionals_
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].kind != TokenKind::kHash) continue;
    const std::string_view name = Text(i + 1);
    const bool begins = name == "if" || name == "ifdef" || name == "ifndef";
    const bool continues = name == "elif" || name == "else";
    if (!begins && !continues && name != "endif") continue;
    if (!begins) {
      if (open.empty()) continue;
      conditionals_[open.back()].branches.back().end = i;
      if (name == "endif") {
        open.pop_back();
        continue;
      }
    } else {
      open.push_back(conditionals_.size());
      conditionals_.emplace_back();
    }
    Conditional::Branch branch;
    branch.hash = i;
    branch.condition = i + 2;
    branch.directive_end = i;
    while (branch.directive_end < tokens_.size() && tokens_[branch.directive_end].kind != TokenKind::kDirectiveEnd) {
      ++branch.directive_end;
    }
    branch.end = static_cast<uint32_t>(tokens_.size());
    branch.is_else = name == "else";
    Conditional& conditional = conditionals_[open.back()];
    for (uint32_t t = branch.condition; t < branch.directive_end; ++t) {
      conditional.names_hip = conditional.names_hip || (IsIdentifier(t) && IsHipMacro(Text(t)));
    }
    conditional.branches.push_back(branch);
  }
  // Outer conditionals come first.
  for (const Conditional& conditional : conditionals_) {
    const CudaMacros macros = conditional.names_hip ? CudaMacros::kUndefined : CudaMacros::kPorted;
    Truth before = Truth::kFalse;  // whether an earlier branch was taken
    if (liveness_[conditional.branches.front().hash] != Liveness::kUnknown)
      continue;  // all of it is like what is around
    for (const Conditional::Branch& branch : conditional.branches) {
      const Truth own = branch.is_else ? Truth::kTrue : EvaluateForHip(*this, branch, macros);
      Liveness liveness = Liveness::kUnknown;
      if (before == Truth::kTrue || own == Truth::kFalse) {
        liveness = Liveness::kDead;
      } else if (own == Truth::kTrue && before == Truth::kFalse && conditional.names_hip) {
        liveness = Liveness::kHipOnly;
      }
      if (liveness != Liveness::kUnknown) {
        for (uint32_t t = branch.directive_end; t < branch.end; ++t) {
          liveness_[t] = liveness;
        }
      }
      before = Or(before, own);
    }
  }
}

std::map<std::string_view, bool> SourceFile::DeviceMacros() const {
  std::map<std::string_view, bool> macros;
  for (size_t i = 1; i < size(); ++i) {
    const bool kernel = Is(i, "__global__");
    if (!tokens_[i].in_directive || (!kernel && !Is(i, "__device__"))) continue;
    size_t define = i;
    while (define > 0 && tokens_[define].kind != TokenKind::kHash) --define;
    // #define NAME ... __device__: a ( right behind the name is of a macro with arguments.
    if (!Is(define + 1, "define") || define + 2 >= i) continue;
    if (Is(define + 3, "(") && tokens_[define + 3].begin == tokens_[define + 2].end) continue;
    macros.emplace(Text(define + 2), kernel);
  }
  return macros;
}

bool SourceFile::BeginsDeviceFunction(uint32_t i, const std::map<std::string_view, bool>& macros) const {
  if (Is(i, "__global__") || Is(i, "__device__")) return true;
  const std::string_view name = Text(i);
  constexpr std::string_view kEnd = "DEVICE";  // CUTLASS_DEVICE, C10_HOST_DEVICE
  bool device = macros.count(name) > 0;
  if (!device && name.size() >= kEnd.size() && name.substr(name.size() - kEnd.size()) == kEnd) {
    device =
        std::all_of(name.begin(), name.end(), [](char c) { return c == '_' || std::isdigit(c) || std::isupper(c); });
  }
  if (!device) return false;
  // Where a declaration may begin, not a value.
  const std::string_view before = i == 0 ? std::string_view(";") : Text(i - 1);
  return before == ";" || before == "{" || before == "}" || before == ">" || before == ":" || before == "]" ||
         before == "static" || before == "inline" || before == "constexpr" || before == "friend" ||
         tokens_[i - 1].kind == TokenKind::kDirectiveEnd || tokens_[i - 1].in_directive;
}

void SourceFile::FindDeviceFunctions() {
  const std::map<std::string_view, bool> macros = DeviceMacros();
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (!IsIdentifier(i) || tokens_[i].in_directive || !BeginsDeviceFunction(i, macros)) continue;
    const auto macro = macros.find(Text(i));
    bool is_kernel = Is(i, "__global__") || (macro != macros.end() && macro->second);
    // The name is the identifier before the first ( that is not an attribute's; a ; { or = first: a variable.
    size_t at = i + 1;
    size_t name = size();
    constexpr size_t kLongest = 200;  // tokens of a declaration's head
    while (at < size() && at < i + kLongest) {
      const std::string_view text = Text(at);
      if (text == "__global__") is_kernel = true;
      if (text == ";" || text == "{" || text == "}" || text == "=") break;
      if (text == "<") {
        const size_t close = ClosingAngle(at);
        if (close < size()) at = close;
      } else if (text == "(") {
        const std::string_view before = Text(at - 1);
        if (before == "__launch_bounds__" || before == "__attribute__" || before == "__align__" ||
            before == "alignas" || before == "decltype") {
          at = Closing(at);
        } else {
          name = at - 1;
          break;
        }
      }
      ++at;
    }
    if (name >= size()) continue;
    const size_t close = Closing(at);
    if (close == size()) continue;
    size_t body = close + 1;
    // const, noexcept, -> type, a constructor's initialisers: up to the body; a ; says declaration.
    while (body < size() && !Is(body, "{") && !Is(body, ";") && !Is(body, "}") && body < close + 100) {
      body = Is(body, "(") ? std::min(Closing(body), size() - 1) + 1 : body + 1;
    }
    if (!Is(body, "{") || Closing(body) == size()) continue;
    device_functions_.push_back({std::string(Text(name)), is_kernel, static_cast<uint32_t>(name),
                                 static_cast<uint32_t>(body), static_cast<uint32_t>(Closing(body))});
    i = static_cast<uint32_t>(body);
  }
}

const DeviceFunction* SourceFile::EnclosingDeviceFunction(size_t token) const {
  const auto after = std::upper_bound(device_functions_.begin(), device_functions_.end(), token,
                                      [](size_t t, const DeviceFunction& f) { return t < f.body_begin; });
  // Functions of a class inside a device function are rare; two steps back cover them.
  for (auto it = after; it != device_functions_.begin();) {
    --it;
    if (token <= it->body_end) return &*it;
    if (after - it > 2) break;
  }
  return nullptr;
}

bool IsBuildMacro(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"USE_ROCM",   "USE_HIP",      "USE_AMD",
                                                      "ENABLE_HIP", "GGML_USE_HIP", "BUILD_ROCM"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool IsHipMacro(std::string_view name) {
  constexpr std::array<std::string_view, 14> kNames = {"__HIP__",
                                                       "__HIPCC__",
                                                       "__HIPCC_RTC__",
                                                       "__HCC__",
                                                       "__HIP_PLATFORM_AMD__",
                                                       "__HIP_PLATFORM_HCC__",
                                                       "__AMDGCN__",
                                                       "__AMDGPU__",
                                                       "__AMD__",
                                                       "HIP_VERSION",
                                                       "HIP_VERSION_MAJOR",
                                                       "ROCM_VERSION",
                                                       "TORCH_HIP_VERSION",
                                                       "__HIP_DEVICE_COMPILE__"};
  return IsBuildMacro(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::set<std::string_view> TemplateParameters(const SourceFile& source) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.Is(i, "template") || !source.Is(i + 1, "<")) continue;
    const size_t close = source.ClosingAngle(i + 1);
    if (close == source.size()) continue;
    for (size_t t = i + 2; t < close; ++t) {
      if (source.IsIdentifier(t) && source.IsIdentifier(t - 1) && (source.Is(t + 1, ",") || source.Is(t + 1, ">"))) {
        names.insert(source.Text(t));
      }
    }
  }
  return names;
}

}  // namespace portolan
