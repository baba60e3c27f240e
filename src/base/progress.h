#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace portolan {

// "searching recipes [########............]  40 % 12 s", at most `columns` wide. `done` is clamped to [0, 1].
std::string ProgressLine(std::string_view what, double done, double elapsed_s, int columns);

// A progress bar on one line of a terminal, redrawn in place and wiped at the end, so that nothing of it stays in a
// log. Draws nothing for work that ends within a second, nor when the stream is not a terminal.
class ProgressBar {
 public:
  enum class Show { kOnTerminal, kAlways };
  struct Options {
    std::FILE* stream = stderr;
    Show show = Show::kOnTerminal;
    double after_s = 1.0;         // silent before
    double interval_s = 0.1;      // between drawings
    std::function<double()> now;  // seconds; a steady clock when empty
  };

  ProgressBar();
  explicit ProgressBar(Options options);
  ~ProgressBar();  // Finish()
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // The share done never goes back.
  void Update(double done, std::string_view what);
  // Wipes the line. Calls after it draw nothing.
  void Finish();

 private:
  Options options_;
  bool shown_;
  bool drawn_ = false;
  double start_s_, last_s_;
  double done_ = 0;
};

}  // namespace portolan
