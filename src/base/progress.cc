#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace portolan {
namespace {

constexpr int kColumns = 79;  // one less than a screen: a full line would wrap
constexpr int kBarColumns = 20;

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string ProgressLine(std::string_view what, double done, double elapsed_s, int columns) {
  done = done > 0 ? std::min(done, 1.0) : 0;  // NaN is nothing done
  const int filled = static_cast<int>(done * kBarColumns);
  const std::string bar(static_cast<size_t>(filled), '#');
  const std::string tail = fmt::format(" [{:.<{}}] {:3.0f} % {:.0f} s", bar, kBarColumns, 100 * done, elapsed_s);
  const size_t room = columns > static_cast<int>(tail.size()) ? static_cast<size_t>(columns) - tail.size() : 0;
  return (std::string(what.substr(0, room)) + tail).substr(0, static_cast<size_t>(std::max(columns, 0)));
}

ProgressBar::ProgressBar() : ProgressBar(Options()) {}

ProgressBar::ProgressBar(Options options)
    : options_(std::move(options)),
      shown_(options_.show == Show::kAlways || isatty(fileno(options_.stream)) == 1),
      start_s_(0),
      last_s_(0) {
  if (!options_.now) options_.now = SteadySeconds;
  start_s_ = options_.now();
  last_s_ = start_s_;
}

ProgressBar::~ProgressBar() { Finish(); }

void ProgressBar::Update(double done, std::string_view what) {
  if (!shown_) return;
  done_ = std::max(done_, done);
  const double now = options_.now();
  if (now - start_s_ < options_.after_s || (drawn_ && now - last_s_ < options_.interval_s)) return;
  last_s_ = now;
  drawn_ = true;
  fmt::print(options_.stream, "\r\x1b[K{}", ProgressLine(what, done_, now - start_s_, kColumns));
  std::fflush(options_.stream);
}

void ProgressBar::Finish() {
  if (drawn_) {
    fmt::print(options_.stream, "\r\x1b[K");
    std::fflush(options_.stream);
  }
  drawn_ = false;
  shown_ = false;
}

}  // namespace portolan
