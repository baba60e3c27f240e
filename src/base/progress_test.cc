#include "base/progress.h"

#include <gtest/gtest.h>

#include <cmath>

namespace portolan {
namespace {

TEST(ProgressTest, Line) {
  EXPECT_EQ(ProgressLine("search", 0.4, 12.2, 79), "search [########............]  40 % 12 s");
  EXPECT_EQ(ProgressLine("search", -1, 0, 79), "search [....................]   0 % 0 s");
  EXPECT_EQ(ProgressLine("search", 7, 0, 79), "search [####################] 100 % 0 s");
  EXPECT_EQ(ProgressLine("search", std::nan(""), 0, 79), "search [....................]   0 % 0 s");
}

TEST(ProgressTest, NeverWiderThanTheScreen) {
  for (const int columns : {0, 1, 20, 40, 79}) {
    EXPECT_LE(ProgressLine(std::string(200, 'x'), 0.5, 1e9, columns).size(), static_cast<size_t>(columns));
  }
}

// What a bar writes to a file when it is updated at these seconds.
std::string Written(ProgressBar::Show show, const std::vector<double>& seconds, const std::vector<double>& done) {
  std::FILE* file = std::tmpfile();
  double now = 0;
  {
    ProgressBar::Options options;
    options.stream = file;
    options.show = show;
    options.now = [&now] { return now; };
    ProgressBar bar(options);
    for (size_t i = 0; i < seconds.size(); ++i) {
      now = seconds[i];
      bar.Update(done[i], "search");
    }
  }
  std::string text(static_cast<size_t>(std::ftell(file)), ' ');
  std::rewind(file);
  const size_t read = std::fread(text.data(), 1, text.size(), file);
  std::fclose(file);
  return text.substr(0, read);
}

TEST(ProgressTest, SilentForShortWork) {
  EXPECT_EQ(Written(ProgressBar::Show::kAlways, {0.2, 0.5, 0.99}, {0.1, 0.5, 1}), "");
}

TEST(ProgressTest, SilentWhereThereIsNoTerminal) {
  EXPECT_EQ(Written(ProgressBar::Show::kOnTerminal, {1, 2, 3}, {0.1, 0.5, 1}), "");
}

// Drawn once a second has passed, not more often than every 0.1 s, never backwards, wiped at the end.
TEST(ProgressTest, DrawsAndWipes) {
  EXPECT_EQ(Written(ProgressBar::Show::kAlways, {0.5, 1.0, 1.05, 1.2}, {0.1, 0.5, 0.6, 0.4}),
            "\r\x1b[Ksearch [##########..........]  50 % 1 s\r\x1b[Ksearch [############........]  60 % 1 s\r\x1b[K");
}

}  // namespace
}  // namespace portolan
