#include "output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "weft/app/explain/lines.h"
#include "weft/app/session/session.h"
#include "weft/base/number.h"
#include "weft/base/utf8.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft {

void reserve_standard_descriptors() {
  // The modes are swapped, so that reading the input and writing the output still fail.
  for (const auto& [descriptor, mode] :
       {std::pair{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_RDONLY}})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) (void)!::open("/dev/null", mode);
}

Output::Output() {
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

void Output::write(std::string_view text) { pass_on(valid_utf8(text)); }

void Output::pass_on(std::string_view text) {
  if (broken() || silent_ || text.empty()) return;
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  broken_ = true;
  complain(fmt::format("warning: cannot write the output: {}\n  statements continue; their output is lost\n",
                       reason(errno != 0 ? errno : EIO)));
}

int Output::exit_code(int code) const {
  if (code != 0 || !broken_) return code;
  return run::launch_name().empty() ? static_cast<int>(session::ExitCode::environment_error) : kOutputLost;
}

std::size_t output_width() {
  constexpr std::size_t kMost = 10'000;
  if (const char* given = std::getenv("COLUMNS"))
    if (const auto width = read_number<std::size_t>(given, 1)) return std::min(*width, kMost);
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::min<std::size_t>(size.ws_col, explain::kUsualWidth);
  return explain::kUsualWidth;
}

std::size_t screen_width() {
  return std::getenv("COLUMNS") != nullptr || isatty(STDOUT_FILENO) != 0 ? output_width() : SIZE_MAX;
}

void complain(std::string_view text) {
  std::string valid = valid_utf8(text);
  if (std::getenv("COLUMNS") != nullptr || isatty(STDERR_FILENO) != 0)
    valid = explain::wrap_complaint(valid, output_width());
  std::fwrite(valid.data(), 1, valid.size(), stderr);
}

std::string reason(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace weft
