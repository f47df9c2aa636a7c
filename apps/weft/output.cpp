#include "output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "weft/explain/lines.h"

namespace weft {

Output::Output() { std::signal(SIGPIPE, SIG_IGN); }

void Output::write(std::string_view text) {
  if (broken() || silent_ || text.empty()) return;
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) failure_ = errno != 0 ? errno : EIO;
}

Status Output::status() const {
  if (!broken() || failure_ == EPIPE) return {};
  return world_error(fmt::format("cannot write the output: {}", reason(failure_)));
}

std::size_t output_width() {
  constexpr std::size_t kMost = 10'000;
  if (const char* given = std::getenv("COLUMNS")) {
    const std::string_view text(given);
    std::size_t width = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error == std::errc() && end == text.data() + text.size() && width > 0) return std::min(width, kMost);
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return explain::kUsualWidth;
}

void complain(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string reason(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace weft
