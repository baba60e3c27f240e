#include "porting/build_words.h"

#include <array>
#include <string>

namespace portolan {
namespace {

struct Word {
  std::string_view cuda;
  std::string_view hip;
};

// Whole words of a Makefile. An empty word is taken away.
constexpr std::array<Word, 31> kWords = {{{"nvcc", "hipcc"},
                                          {"$(CUDA_PATH)/bin/nvcc", "hipcc"},
                                          {"--use_fast_math", "-ffast-math"},
                                          {"-use_fast_math", "-ffast-math"},
                                          {"-rdc=true", "-fgpu-rdc"},
                                          {"--relocatable-device-code=true", "-fgpu-rdc"},
                                          {"-dc", "-fgpu-rdc -c"},
                                          {"--fmad=false", "-ffp-contract=off"},
                                          {"-fmad=false", "-ffp-contract=off"},
                                          {"--fmad=true", "-ffp-contract=fast"},
                                          {"-fmad=true", "-ffp-contract=fast"},
                                          {"--expt-relaxed-constexpr", ""},
                                          {"--expt-extended-lambda", ""},
                                          {"-expt-extended-lambda", ""},
                                          {"--extended-lambda", ""},
                                          {"-extended-lambda", ""},
                                          {"-lineinfo", "-gline-tables-only"},
                                          {"--generate-line-info", "-gline-tables-only"},
                                          {"-Xcompiler", ""},
                                          {"--compiler-options", ""},
                                          {"-lcublas", "-lhipblas"},
                                          {"-lcublasLt", "-lhipblaslt"},
                                          {"-lcurand", "-lhiprand"},
                                          {"-lcusparse", "-lhipsparse"},
                                          {"-lcufft", "-lhipfft"},
                                          {"-lcusolver", "-lhipsolver"},
                                          {"-lcudart", "-lamdhip64"},
                                          {"-lcuda", "-lamdhip64"},
                                          {"-lnccl", "-lrccl"},
                                          {"-lnvToolsExt", "-lroctx64"},
                                          {"-lcudadevrt", ""}}};

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

}  // namespace

bool FindHipWord(std::string_view word, std::string_view* hip) {
  for (const Word& known : kWords) {
    if (word != known.cuda) continue;
    *hip = known.hip;
    return true;
  }
  if (word.size() > 5 && word.substr(word.size() - 5) == "/nvcc") {
    *hip = "hipcc";
    return true;
  }
  return false;
}

bool IsArchitectureWord(std::string_view word) {
  return StartsWith(word, "-arch=") || StartsWith(word, "--gpu-architecture=") || StartsWith(word, "-gencode") ||
         StartsWith(word, "--generate-code");
}

std::string PortFlagText(const std::string& text) {
  std::string result;
  size_t at = 0;
  bool drop_next = false;
  while (at < text.size()) {
    const size_t begin = at;
    const auto separates = [&](char c) {
      // The value behind -gencode has commas of its own.
      return c == ' ' || c == ';' || c == '"' || c == '>' || c == '\n' || (c == ',' && !drop_next);
    };
    while (at < text.size() && !separates(text[at])) ++at;
    std::string word = text.substr(begin, at - begin);
    // $<$<...>:flag and -Xcompiler=flag: the flag is behind the colon.
    const size_t colon = StartsWith(word, "$<") ? word.rfind(':') : std::string::npos;
    std::string head;
    if (colon != std::string::npos) {
      head = word.substr(0, colon + 1);
      word = word.substr(colon + 1);
    } else if (!result.empty() && StartsWith(word, ":") && text[begin - 1] == '>') {
      head = ":";
      word = word.substr(1);
    }
    std::string_view hip;
    const bool flag = StartsWith(word, "-");
    if (drop_next && !word.empty()) {
      word.clear();
      drop_next = false;
    } else if (flag && IsArchitectureWord(word)) {
      drop_next = word == "-gencode" || word == "--generate-code";
      word.clear();
    } else if (flag && (word == "-Xptxas" || word == "--ptxas-options")) {
      drop_next = true;
      word.clear();
    } else if (flag && (StartsWith(word, "-Xptxas=") || StartsWith(word, "--ptxas-options="))) {
      word.clear();
    } else if (flag && FindHipWord(word, &hip)) {
      word = hip;
    }
    const bool gone = word.empty() && at > begin && head.empty();
    result += head + word;
    if (at < text.size()) {
      // The separator behind a flag that went goes too, unless it closes something.
      if (!(gone && (text[at] == ' ' || text[at] == ';'))) result.push_back(text[at]);
      ++at;
    }
  }
  if (result != text) {
    while (!result.empty() && (result.back() == ' ' || result.back() == ';')) result.pop_back();
    const size_t close = result.size();
    if (close >= 2 && result.back() == '"') {
      size_t end = close - 1;
      while (end > 1 && (result[end - 1] == ' ' || result[end - 1] == ';')) --end;
      result = result.substr(0, end) + "\"";
    }
  }
  return result;
}

}  // namespace portolan
