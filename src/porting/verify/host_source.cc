#include "porting/verify/host_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "porting/compat.h"
#include "porting/finding.h"
#include "porting/rule.h"
#include "porting/to_cuda.h"

namespace portolan {
namespace {

bool IsQualifier(std::string_view word) {
  return word == "extern" || word == "static" || word == "__shared__" || word == "inline";
}

// A declaration with __shared__ in it: its tokens [begin, semicolon].
struct SharedDeclaration {
  size_t begin = 0;
  size_t semicolon = 0;
  bool is_extern = false;
  std::vector<size_t> names;  // tokens of the declared names
  size_t first_bracket = 0;   // behind the first name; 0 for none
};

// False for a __shared__ that does not begin a declaration (a parameter's qualifier).
bool ReadSharedDeclaration(const SourceFile& source, size_t shared, SharedDeclaration* declaration) {
  size_t begin = shared;
  while (begin > 0) {
    const Token& before = source.tokens()[begin - 1];
    const std::string_view text = source.Text(begin - 1);
    if (before.kind == TokenKind::kDirectiveEnd || text == ";" || text == "{" || text == "}" || text == ":") break;
    if (text == "(" || text == ",") return false;
    if (text == ")") {
      // alignas(16) and the like; otherwise the head of a statement.
      size_t open = begin - 1;
      while (open > 0 && source.Closing(open) != begin - 1) --open;
      if (open == 0 || !source.IsIdentifier(open - 1)) return false;
      const std::string_view word = source.Text(open - 1);
      if (word != "alignas" && word != "__align__" && word != "__attribute__") return false;
      begin = open - 1;
      continue;
    }
    --begin;
    if (source.Is(begin, "extern")) declaration->is_extern = true;
  }
  declaration->begin = begin;
  size_t last_name = 0;
  bool named = false;
  for (size_t i = begin; i < source.size(); ++i) {
    const std::string_view text = source.Text(i);
    if (source.tokens()[i].kind == TokenKind::kDirectiveEnd) return false;
    if (text == "extern") declaration->is_extern = true;
    if (text == "(" || text == "{" || text == "[") {
      if (text == "[" && !named && last_name != 0) {
        declaration->names.push_back(last_name);
        if (declaration->first_bracket == 0) declaration->first_bracket = i;
        named = true;
      }
      i = source.Closing(i);
      if (i >= source.size()) return false;
    } else if (text == "<" && i > 0 && source.IsIdentifier(i - 1)) {
      const size_t close = source.ClosingAngle(i);
      if (close < source.size()) i = close;
    } else if (text == "," || text == ";" || text == "=") {
      if (!named && last_name != 0) declaration->names.push_back(last_name);
      named = text == "=";
      last_name = 0;
      if (text == ";") {
        declaration->semicolon = i;
        return !declaration->names.empty();
      }
    } else if (source.IsIdentifier(i)) {
      last_name = i;
    }
  }
  return false;
}

// The type of an extern __shared__ array as written, without the words that say where it lies.
SharedArrayDeclaration ReadArray(const SourceFile& source, const SharedDeclaration& declaration) {
  SharedArrayDeclaration array;
  for (size_t i = declaration.begin; i < declaration.names[0]; ++i) {
    const std::string_view word = source.Text(i);
    if (IsQualifier(word)) continue;
    if ((word == "alignas" || word == "__align__" || word == "__attribute__") && source.Is(i + 1, "(")) {
      i = source.Closing(i + 1);
      continue;
    }
    array.type += (array.type.empty() ? "" : " ") + std::string(word);
  }
  if (declaration.first_bracket != 0) {
    array.brackets = std::string(source.Range(declaration.first_bracket, declaration.semicolon));
  } else {
    array.brackets = "[]";
  }
  return array;
}

std::string DynamicArrayText(const std::string& name, const SharedArrayDeclaration& array) {
  return fmt::format("{0} (&{1}){2} = *reinterpret_cast<{0} (*){2}>(::portolan::gpu::DynamicShared());", array.type,
                     name, array.brackets);
}

class Translator {
 public:
  Translator(const SourceFile& source, const SharedArrays& arrays, const PortTarget& target)
      : source_(source), arrays_(arrays), target_(target) {}

  std::string Run() {
    const std::string parts = Assembly();
    for (size_t i = 0; i < source_.size(); ++i) {
      const std::string_view text = source_.Text(i);
      if (text == "<<<" && source_.tokens()[i].kind == TokenKind::kPunctuator) Launch(i);
      if (text == "__shared__" && source_.IsIdentifier(i)) i = Shared(i);
      // As a macro it would reach the standard library's own attributes.
      if (text == "__noinline__" && !source_.Is(i - 1, "(") && !source_.Is(i - 1, ",")) {
        edits_.push_back({source_.tokens()[i].begin, source_.tokens()[i].end, "__attribute__((noinline))"});
      }
    }
    if (!arrays_.empty()) DeclareArrays();
    return parts + ApplyEdits(source_.text(), std::move(edits_));
  }

 private:
  // PTX by the porter's rule; what is left would reach the host's assembler. Returns the functions that it needs, to
  // stand in front of the source.
  std::string Assembly() {
    static const ProjectFacts no_facts;
    static const HipDeclarations no_declarations;
    RuleOutput output;
    for (const PortingRule& rule : AllPortingRules()) {
      if (std::string_view(rule.id) == "inline-ptx") {
        rule.apply({source_, no_facts, target_, no_declarations}, &output);
      }
    }
    edits_ = std::move(output.edits);
    for (size_t i = 0; i < source_.size(); ++i) {
      if (!source_.Is(i, "asm") && !source_.Is(i, "__asm__") && !source_.Is(i, "__asm")) continue;
      if (source_.EnclosingDeviceFunction(i) == nullptr && !source_.tokens()[i].in_directive) continue;
      size_t open = i + 1;
      while (source_.Is(open, "volatile") || source_.Is(open, "__volatile__")) ++open;
      const size_t close = source_.Closing(open);
      if (!source_.Is(open, "(") || close >= source_.size()) continue;
      const uint32_t begin = source_.tokens()[i].begin;
      const uint32_t end = source_.tokens()[close].end;
      const bool translated = std::any_of(edits_.begin(), edits_.end(),
                                          [&](const Edit& edit) { return edit.begin >= begin && edit.begin < end; });
      if (translated || source_.Text(open + 1).size() <= 2) continue;  // an empty template orders the compiler alone
      edits_.push_back({begin, end, "::portolan::gpu::Unsupported(\"inline assembly\")"});
    }
    if (output.compat.empty()) return "";
    return CompatPartsText(output.compat) + "#line 1\n";
  }

  void Insert(uint32_t offset, std::string text) { edits_.push_back({offset, offset, std::move(text)}); }
  void Remove(size_t token) { edits_.push_back({source_.tokens()[token].begin, source_.tokens()[token].end, ""}); }

  // Where the expression in front of <<< begins: a name with its namespaces and template arguments, (*pointer), a[i],
  // a macro's parameter with ##.
  size_t KernelBegin(size_t angle) const {
    size_t at = angle;
    for (;;) {
      if (at == 0) return at;
      const std::string_view before = source_.Text(at - 1);
      if (before == ">") {
        int depth = 0;
        size_t open = at - 1;
        while (open > 0 && at - open < 400) {
          if (source_.Is(open, ">")) ++depth;
          if (source_.Is(open, "<") && --depth == 0) break;
          --open;
        }
        at = open;
        continue;
      }
      if (before == ")" || before == "]") {
        size_t open = at - 1;
        while (open > 0 && source_.Closing(open) != at - 1) --open;
        at = open;
        if (at > 0 && source_.IsIdentifier(at - 1)) continue;
        return at;
      }
      if (!source_.IsIdentifier(at - 1)) return at;
      --at;
      if (at == 0) return at;
      const std::string_view joint = source_.Text(at - 1);
      if (joint == "::" || joint == "." || joint == "->" || joint == "##") {
        --at;
        if (joint == "::" && (at == 0 || (!source_.IsIdentifier(at - 1) && !source_.Is(at - 1, ">")))) return at;
        if (joint == "::" && source_.Is(at - 1, "return")) return at;
        continue;
      }
      if (joint == "template") {
        --at;
        continue;
      }
      return at;
    }
  }

  void Launch(size_t angle) {
    size_t end = angle + 1;
    for (; end < source_.size(); ++end) {
      const std::string_view text = source_.Text(end);
      if (text == ">" && source_.Is(end + 1, ">") && source_.Is(end + 2, ">")) break;
      if (text == "(" || text == "[" || text == "{") end = source_.Closing(end);
      if (text == ";") return;
    }
    if (end + 2 >= source_.size()) return;
    const auto& tokens = source_.tokens();
    Insert(tokens[KernelBegin(angle)].begin, "PORTOLAN_GPU_LAUNCH((");
    edits_.push_back({tokens[angle].begin, tokens[angle].end, "), ("});
    edits_.push_back({tokens[end].begin, tokens[end + 2].end, "))"});
  }

  // Returns the last token that was dealt with.
  size_t Shared(size_t token) {
    SharedDeclaration declaration;
    if (!ReadSharedDeclaration(source_, token, &declaration)) {
      Remove(token);
      return token;
    }
    const auto& tokens = source_.tokens();
    const uint32_t begin = tokens[declaration.begin].begin;
    const uint32_t end = tokens[declaration.semicolon].end;
    if (declaration.is_extern) {
      const std::string name(source_.Text(declaration.names[0]));
      const bool in_function = source_.EnclosingDeviceFunction(token) != nullptr || tokens[token].in_directive;
      std::string text = in_function ? DynamicArrayText(name, ReadArray(source_, declaration)) : "";
      for (const char c : source_.text().substr(begin, end - begin)) {
        if (c == '\n') text += '\n';
      }
      edits_.push_back({begin, end, text});
      return declaration.semicolon;
    }
    const std::string type = fmt::format("portolan_shared_{}", token);
    // One edit a token: two at one place are one too many.
    const std::string head = "struct " + type + " { ";
    if (IsQualifier(source_.Text(declaration.begin))) {
      edits_.push_back({begin, tokens[declaration.begin].end, head});
    } else {
      Insert(begin, head);
    }
    for (size_t i = declaration.begin + 1; i < declaration.names[0]; ++i) {
      if (IsQualifier(source_.Text(i))) Remove(i);
    }
    std::string names = fmt::format(" }}; PORTOLAN_GPU_SHARED({0}, {0}_v);", type);
    for (const size_t name : declaration.names) {
      names += fmt::format(" auto& {0} = {1}_v.{0};", source_.Text(name), type);
    }
    Insert(end, names);
    return declaration.semicolon;
  }

  // The names in the parameter list of `function`, and those of its own __shared__ variables: they hide an array that
  // the file declares.
  std::set<std::string_view> OwnNames(const DeviceFunction& function) const {
    std::set<std::string_view> names;
    for (size_t i = function.body_begin; i > 0 && !source_.Is(i, ";") && !source_.Is(i, "}"); --i) {
      if (source_.IsIdentifier(i)) names.insert(source_.Text(i));
    }
    for (size_t i = function.body_begin; i < function.body_end; ++i) {
      SharedDeclaration declaration;
      if (!source_.Is(i, "__shared__") || !ReadSharedDeclaration(source_, i, &declaration)) continue;
      for (const size_t name : declaration.names) names.insert(source_.Text(name));
    }
    return names;
  }

  void DeclareArrays() {
    for (const DeviceFunction& function : source_.device_functions()) {
      std::set<std::string_view> used;
      const std::set<std::string_view> own = OwnNames(function);
      for (size_t i = function.body_begin; i < function.body_end; ++i) {
        if (!source_.IsIdentifier(i) || arrays_.count(source_.Text(i)) == 0) continue;
        if (source_.Is(i - 1, ".") || source_.Is(i - 1, "->") || source_.Is(i - 1, "::")) continue;
        if (own.count(source_.Text(i)) == 0) used.insert(source_.Text(i));
      }
      for (const std::string_view name : used) {
        Insert(source_.tokens()[function.body_begin].end,
               " " + DynamicArrayText(std::string(name), arrays_.find(name)->second));
      }
    }
  }

  const SourceFile& source_;
  const SharedArrays& arrays_;
  const PortTarget& target_;
  std::vector<Edit> edits_;
};

}  // namespace

void CollectSharedArrays(const SourceFile& source, SharedArrays* arrays) {
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source.Is(i, "__shared__") || !source.IsIdentifier(i) || source.tokens()[i].in_directive) continue;
    SharedDeclaration declaration;
    if (!ReadSharedDeclaration(source, i, &declaration)) continue;
    if (declaration.is_extern && source.EnclosingDeviceFunction(i) == nullptr) {
      (*arrays)[std::string(source.Text(declaration.names[0]))] = ReadArray(source, declaration);
    }
    i = declaration.semicolon;
  }
}

std::string TranslateForHost(const SourceFile& source, const SharedArrays& arrays, const PortTarget& target) {
  return Translator(source, arrays, target).Run();
}

std::string SetConstants(const SourceFile& source, const std::map<std::string, std::string>& values,
                         std::set<std::string>* found) {
  std::vector<Edit> edits;
  for (size_t i = 1; i + 1 < source.size(); ++i) {
    if (!source.IsIdentifier(i)) continue;
    const auto value = values.find(std::string(source.Text(i)));
    if (value == values.end()) continue;
    size_t begin = 0;
    size_t end = i + 1;
    if (source.Is(i - 1, "define") && source.tokens()[i].in_directive) {
      begin = i + 1;
      while (end < source.size() && source.tokens()[end].kind != TokenKind::kDirectiveEnd) ++end;
    } else if (source.Is(i + 1, "=") && !source.Is(i + 2, "=")) {
      // `const int a = 1, b = 2;`: back to the beginning of the declaration.
      bool constant = false;
      for (size_t back = i; back > 0; --back) {
        if (source.Is(back - 1, ";") || source.Is(back - 1, "{") || source.Is(back - 1, "}") ||
            source.Is(back - 1, "(") || source.tokens()[back - 1].kind == TokenKind::kDirectiveEnd) {
          break;
        }
        constant = constant || source.Is(back - 1, "const") || source.Is(back - 1, "constexpr");
      }
      if (!constant) continue;
      begin = i + 2;
      while (end < source.size() && !source.Is(end, ";") && !source.Is(end, ",")) {
        end = source.Is(end, "(") ? source.Closing(end) + 1 : end + 1;
      }
    }
    if (begin == 0 || begin >= end || end > source.size()) continue;
    edits.push_back({source.tokens()[begin].begin, source.tokens()[end - 1].end, value->second});
    found->insert(value->first);
  }
  return ApplyEdits(source.text(), std::move(edits));
}

std::string RenameToCuda(const SourceFile& source) {
  std::vector<Edit> edits;
  for (size_t i = 0; i < source.size(); ++i) {
    const Token& token = source.tokens()[i];
    const std::string_view text = source.Text(i);
    if (token.kind == TokenKind::kHeaderName || token.kind == TokenKind::kString) {
      if (i < 2 || !source.Is(i - 1, "include") || text.size() < 3) continue;
      const std::string header = HipToCudaHeader(text.substr(1, text.size() - 2));
      if (!header.empty()) edits.push_back({token.begin, token.end, "<" + header + ">"});
    } else if (token.kind == TokenKind::kIdentifier) {
      if (text == "hipcub") {
        edits.push_back({token.begin, token.end, "cub"});
        continue;
      }
      const std::string cuda = HipToCudaName(text);
      if (!cuda.empty()) edits.push_back({token.begin, token.end, cuda});
    }
  }
  return ApplyEdits(source.text(), std::move(edits));
}

}  // namespace portolan
