#include <algorithm>

#include "porting/build_words.h"
#include "porting/port.h"

namespace portolan {
namespace {

// Flags that take the next word with them.
bool TakesNext(std::string_view word) { return word == "-gencode" || word == "-Xptxas" || word == "--ptxas-options"; }

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// One line without its end.
std::string PortLine(std::string_view line, std::string_view gfx) {
  std::string result;
  size_t at = 0;
  bool drop_next = false;
  bool has_architecture = false;
  while (at < line.size()) {
    const size_t blank = at;
    while (at < line.size() && IsBlank(line[at])) ++at;
    const size_t begin = at;
    while (at < line.size() && !IsBlank(line[at])) ++at;
    const std::string_view blanks = line.substr(blank, begin - blank);
    std::string_view word = line.substr(begin, at - begin);
    if (StartsWith(word, "#")) return result + std::string(line.substr(blank));
    if (drop_next) {
      drop_next = false;
      continue;
    }
    const bool continued = at == line.size() && word.size() > 1 && word.back() == '\\';  // a continuation glued to it
    if (continued) word.remove_suffix(1);
    // CC=nvcc, CFLAGS:=-arch=sm_60: the part behind the sign is the word.
    const size_t sign = word.find('=');
    std::string_view head;
    if (sign != std::string_view::npos && word[0] != '-' && sign + 1 < word.size()) {
      head = word.substr(0, sign + 1);
      word = word.substr(sign + 1);
    }
    std::string replacement(word);
    if (StartsWith(word, "-arch=") || StartsWith(word, "--gpu-architecture=") || StartsWith(word, "-gencode=") ||
        StartsWith(word, "--generate-code=") || TakesNext(word)) {
      const bool architecture = word != "-Xptxas" && word != "--ptxas-options";
      replacement = architecture && !has_architecture ? "--offload-arch=" + std::string(gfx) : "";
      has_architecture = has_architecture || architecture;
      drop_next = TakesNext(word);
    } else if (StartsWith(word, "-Xptxas=") || StartsWith(word, "--ptxas-options=")) {
      replacement.clear();
    } else if (StartsWith(word, "-Xcompiler=") || StartsWith(word, "--compiler-options=")) {
      replacement = word.substr(word.find('=') + 1);
    } else {
      std::string_view hip;
      if (FindHipWord(word, &hip)) replacement = hip;
    }
    // A word that goes takes the blanks before it along, but not a recipe's tab.
    if (replacement.empty() && head.empty() && result.empty() && !blanks.empty())
      result.append(blanks);
    else if (!replacement.empty() || !head.empty() || word.empty())
      result.append(blanks).append(head).append(replacement);
    if (continued) result += replacement.empty() ? " \\" : "\\";
  }
  return result;
}

}  // namespace

std::string PortMakefile(std::string_view text, std::string_view gfx) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    const bool carriage = !line.empty() && line.back() == '\r';
    if (carriage) line.remove_suffix(1);
    result += PortLine(line, gfx);
    if (carriage) result += '\r';
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

}  // namespace portolan
