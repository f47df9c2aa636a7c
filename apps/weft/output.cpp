#include "output.h"

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

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

void complain(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string reason(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace weft
