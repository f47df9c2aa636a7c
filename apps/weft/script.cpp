#include "script.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "interrupt.h"
#include "output.h"

namespace weft {
namespace {

constexpr std::size_t kMostScriptBytes = std::size_t{64} << 20;  // the limit of RUN; a device never ends

Error cannot_read(const std::string& file, int error_number) {
  const std::string name = file == "-" ? "the standard input" : fmt::format("'{}'", file);
  return environment_error(fmt::format("cannot read {}: {}", name, reason(error_number)));
}

}  // namespace

Result<std::string> read_script(const std::string& file) {
  const int from = file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return cannot_read(file, errno);
  std::string text;
  std::array<char, 1 << 16> block;
  int failure = 0;
  for (;;) {
    const ssize_t got = ::read(from, block.data(), block.size());
    if (got == 0) break;
    if (got > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
      if (text.size() <= kMostScriptBytes) continue;
      if (from != STDIN_FILENO) ::close(from);
      return user_error(fmt::format("{} is too large: expected at most 64 MiB of statements",
                                    file == "-" ? "the standard input" : file));
    }
    if (errno == EINTR && !interrupt::requested()) continue;
    failure = errno;
    break;
  }
  if (from != STDIN_FILENO) ::close(from);
  if (failure == EINTR) return user_error("interrupted");
  if (failure != 0) return cannot_read(file, failure);
  return text;
}

}  // namespace weft
