#include "weft/communication/transport/group_keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace weft::transport {
namespace {

constexpr std::size_t kMostGroups = 4096;

// Runs after a fork in a possibly multi-threaded program: nothing here allocates.
[[noreturn]] void keep(int pipe) {
  // Signals from the terminal and to the launcher's group must not reach this process.
  ::setsid();
  ::prctl(PR_SET_NAME, "weft keeper");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Close inherited files, so that readers of the launcher's output or pipes do not wait for this
  // process.
  if (pipe != 0) ::dup2(pipe, 0);
  if (::syscall(SYS_close_range, 1U, ~0U, 0U) != 0)
    for (int file = 1; file < 1024; ++file) ::close(file);

  static std::array<pid_t, kMostGroups> groups;
  std::size_t count = 0;
  for (;;) {
    pid_t word = 0;
    const ssize_t came = ::read(0, &word, sizeof word);
    if (came < 0 && errno == EINTR) continue;
    if (came != sizeof word) break;
    const auto end = groups.begin() + static_cast<std::ptrdiff_t>(count);
    if (word > 0 && count < kMostGroups)
      groups[count++] = word;
    else
      count = static_cast<std::size_t>(std::remove(groups.begin(), end, -word) - groups.begin());
  }
  for (std::size_t i = 0; i < count; ++i) ::kill(-groups[i], SIGKILL);
  ::_exit(0);
}

}  // namespace

Error no_process(int code) {
  Error error = tcp::socket_error("cannot start a process", code);
  error.hint = "ulimit -u or the container limits the number of processes: start fewer ranks";
  return error;
}

Result<GroupKeeper> GroupKeeper::start() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tcp::socket_error("cannot make a pipe", errno);
  tcp::Socket read(ends[0]);
  GroupKeeper keeper;
  keeper.pipe_ = tcp::Socket(ends[1]);
  keeper.process_ = ::fork();
  if (keeper.process_ < 0) return no_process(errno);
  if (keeper.process_ == 0) keep(ends[0]);
  return keeper;
}

GroupKeeper::~GroupKeeper() {
  if (!pipe_) return;
  pipe_.close();
  ::waitpid(process_, nullptr, 0);
}

void GroupKeeper::tell(pid_t word) const {
  ssize_t written = 0;
  do written = ::write(pipe_.descriptor(), &word, sizeof word);
  while (written < 0 && errno == EINTR);
}

}  // namespace weft::transport
