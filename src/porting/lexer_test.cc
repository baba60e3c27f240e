#include "porting/lexer.h"

#include <gtest/gtest.h>

#include <string>

namespace portolan {
namespace {

// The tokens of `text`, each between bars; # and end mark a directive's ends.
std::string Tokens(const std::string& text) {
  std::string result;
  for (const Token& token : Lex(text)) {
    if (token.kind == TokenKind::kDirectiveEnd) {
      result += "|end";
    } else {
      result += "|" + text.substr(token.begin, token.end - token.begin);
    }
  }
  return result;
}

TEST(Lexer, SplitsNamesNumbersAndPunctuators) {
  EXPECT_EQ(Tokens("a+=b->c::d<<2;"), "|a|+|=|b|->|c|::|d|<<|2|;");
  EXPECT_EQ(Tokens("x = 0x1fULL + 1e-3f + 1'000 + .5;"), "|x|=|0x1fULL|+|1e-3f|+|1'000|+|.5|;");
  EXPECT_EQ(Tokens("0xe+1"), "|0xe|+|1");
}

TEST(Lexer, KeepsLaunchesWhole) {
  EXPECT_EQ(Tokens("k<<<g, b>>>(x)"), "|k|<<<|g|,|b|>|>|>|(|x|)");
  EXPECT_EQ(Tokens("k<a<b>><<<1,1>>>()"), "|k|<|a|<|b|>|>|<<<|1|,|1|>|>|>|(|)");
}

TEST(Lexer, SkipsCommentsAndContinuations) {
  EXPECT_EQ(Tokens("a /* b\n c */ d // e \\\n f\ng"), "|a|d|g");
  EXPECT_EQ(Tokens("a \\\n b"), "|a|b");
  EXPECT_EQ(Tokens("a /* open"), "|a");
}

TEST(Lexer, KeepsStringsWhole) {
  EXPECT_EQ(Tokens(R"(f("a \" // b", 'c', L"d"))"), R"(|f|(|"a \" // b"|,|'c'|,|L"d"|))");
  EXPECT_EQ(Tokens("R\"x(a\n)\" b)x\" c"), "|R\"x(a\n)\" b)x\"|c");
  EXPECT_EQ(Tokens("\"no end\nnext"), "|\"no end|next");
  EXPECT_EQ(Tokens("R\"(no end"), "|R\"(no end");
}

TEST(Lexer, MarksDirectives) {
  EXPECT_EQ(Tokens("#include <a/b.h>\nx<y>z"), "|#|include|<a/b.h>|end|x|<|y|>|z");
  EXPECT_EQ(Tokens("  # define A \\\n 1\nb"), "|#|define|A|1|end|b");
  EXPECT_EQ(Tokens("a # b ## c"), "|a|#|b|##|c");
  EXPECT_EQ(Tokens("#define A /* two\nlines */ 1\nb"), "|#|define|A|1|end|b");
  EXPECT_EQ(Tokens("#if A"), "|#|if|A|end");
}

TEST(Lexer, TakesWhateverBytesComeIn) {
  EXPECT_EQ(Tokens("\xEF\xBB\xBF#if A\r\nb\r\n"), "|#|if|A|end|b");
  EXPECT_EQ(Tokens("na\xEFve = 1"), "|na\xEFve|=|1");
  EXPECT_EQ(Tokens(std::string("a\0b", 3)), std::string("|a|\0|b", 6));
  EXPECT_EQ(Tokens(""), "");
  EXPECT_EQ(Tokens("\\"), "|\\");
}

TEST(Lexer, IsLinear) {
  // What would be quadratic if each start looked for its end anew.
  for (const char* piece : {"R\"(", "/* ", "\"", "<<<", "\\ ", "1e+", "#include <", "'"}) {
    std::string text;
    while (text.size() < 2'000'000) text += piece;
    EXPECT_LE(Lex(text).size(), text.size()) << piece;
  }
}

}  // namespace
}  // namespace portolan
