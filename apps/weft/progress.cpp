#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace weft {
namespace {

void write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// The terminal's columns; 80 if unknown.
int columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressDisplay::ProgressDisplay() : unicode_(speaks_unicode()) {
  const char* kind = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

void ProgressDisplay::show(const explain::Progress& progress) {
  if (terminal_)
    show_bar(progress);
  else if (!progress.search)
    show_line(progress);
}

void ProgressDisplay::show_bar(const explain::Progress& progress) {
  // Leave the last column free: some terminals wrap when it is written.
  write("\r" + explain::progress_bar(progress, columns() - 1, unicode_) + "\x1b[K");
  drawn_ = true;
}

void ProgressDisplay::show_line(const explain::Progress& progress) {
  constexpr double kLongest = 60;
  if (progress.model != model_ || progress.step < next_step_ - (progress.steps + 9) / 10) {
    model_ = progress.model;
    next_step_ = 0;
    next_seconds_ = 0;
  }
  const double time = now();
  const bool due = progress.step >= next_step_ || time >= next_seconds_ || progress.step == progress.steps;
  if (!due) return;
  write(explain::progress_line(progress));
  const std::int64_t tenth = (progress.steps + 9) / 10;
  next_step_ = tenth > 0 ? (progress.step / tenth + 1) * tenth : progress.step + 1;
  next_seconds_ = time + kLongest;
}

void ProgressDisplay::clear() {
  if (!drawn_) return;
  write("\r\x1b[K");
  drawn_ = false;
}

}  // namespace weft
