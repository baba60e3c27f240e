#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "porting/lexer.h"

namespace portolan {

struct Position {
  int line = 1;    // 1-based
  int column = 1;  // 1-based, in bytes
};

// What the preprocessor of the target's compiler makes of a place.
enum class Liveness : uint8_t {
  kUnknown,  // compiled or not: conditions that only the build knows
  kDead,     // never compiled for HIP: #if 0, #ifndef USE_ROCM, the #else of #ifdef __HIP__
  kHipOnly,  // compiled for HIP alone: already written for it
};

// One #if ... #endif.
struct Conditional {
  struct Branch {
    uint32_t hash = 0;       // token index of the # of #if, #elif or #else
    uint32_t condition = 0;  // token index of the first token of the condition; the directive's end for #else
    uint32_t directive_end = 0;
    uint32_t end = 0;  // token index of the next branch's hash, of #endif's, or the number of tokens
    bool is_else = false;
  };
  std::vector<Branch> branches;
  bool names_hip = false;  // a condition reads a macro that HIP or a ROCm build defines
};

// A function definition, lambda bodies aside, that carries __global__ or __device__ (or both __host__ and __device__).
struct DeviceFunction {
  std::string name;
  bool is_kernel = false;
  uint32_t name_token = 0;
  uint32_t body_begin = 0;  // token index of {
  uint32_t body_end = 0;    // token index of its }
};

// One file: its bytes, its tokens and what they mean as far as it can be told without a compiler.
class SourceFile {
 public:
  SourceFile(std::string path, std::string text);

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  size_t size() const { return tokens_.size(); }
  std::string_view Text(size_t token) const {
    return token < tokens_.size()
               ? std::string_view(text_).substr(tokens_[token].begin, tokens_[token].end - tokens_[token].begin)
               : std::string_view();
  }
  bool Is(size_t token, std::string_view text) const { return Text(token) == text; }
  bool IsIdentifier(size_t token) const {
    return token < tokens_.size() && tokens_[token].kind == TokenKind::kIdentifier;
  }
  Position PositionOf(size_t offset) const;
  Liveness LivenessOf(size_t token) const { return token < liveness_.size() ? liveness_[token] : Liveness::kUnknown; }

  // The token index of the bracket that closes the one at `open` ((, [ or {), or size() when none does.
  size_t Closing(size_t open) const { return open < closing_.size() && closing_[open] != 0 ? closing_[open] : size(); }
  // As above for a < that begins template arguments; size() when it rather is a comparison.
  size_t ClosingAngle(size_t open) const;
  // Token ranges [first, second) of the arguments of the call whose ( is at `open`; empty for f() and unclosed calls.
  std::vector<std::pair<size_t, size_t>> Arguments(size_t open) const;
  // The source text from token `begin` up to, not including, token `end`.
  std::string_view Range(size_t begin, size_t end) const;

  const std::vector<Conditional>& conditionals() const { return conditionals_; }
  const std::vector<DeviceFunction>& device_functions() const { return device_functions_; }
  // The innermost device function around a token; nullptr on the host.
  const DeviceFunction* EnclosingDeviceFunction(size_t token) const;

 private:
  void MatchBrackets();
  void FindConditionals();
  void FindDeviceFunctions();
  // The file's own macros without arguments that hold __device__, or __global__ (true).
  std::map<std::string_view, bool> DeviceMacros() const;
  // Whether token `i` marks what follows as device code: by its word, by a macro of the file's or by its name.
  bool BeginsDeviceFunction(uint32_t i, const std::map<std::string_view, bool>& macros) const;

  std::string path_;
  std::string text_;
  std::vector<Token> tokens_;
  std::vector<uint32_t> line_starts_;
  std::vector<uint32_t> closing_;
  std::vector<Liveness> liveness_;
  std::vector<Conditional> conditionals_;
  std::vector<DeviceFunction> device_functions_;
};

// Names of the template parameters anywhere in the file.
std::set<std::string_view> TemplateParameters(const SourceFile& source);

// Whether `name` is a macro that a ROCm build of a dual-source project defines on its command line (USE_ROCM ...), as
// against those that HIP's compiler or headers define.
bool IsBuildMacro(std::string_view name);

// Whether `name` is a macro that only HIP's compiler, its headers or a ROCm build of a dual-source project defines.
bool IsHipMacro(std::string_view name);

}  // namespace portolan
