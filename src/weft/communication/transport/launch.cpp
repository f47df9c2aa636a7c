#include "weft/communication/transport/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/communication/transport/group_keeper.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/communication/transport/tcp/socket.h"

extern char** environ;  // NOLINT: declared by POSIX

namespace weft::transport {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = tcp::Socket;  // closed automatically

constexpr std::chrono::milliseconds kLastWarning{1'000};  // between SIGTERM and SIGKILL
constexpr std::size_t kLongestLine = 1 << 20;             // bytes; longer lines are split

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tcp::socket_error("cannot make a pipe", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The environment of a rank, in the format of execve.
class Variables {
 public:
  Variables() {
    for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
      const std::string_view text = *each;
      if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
        values_[std::string(text.substr(0, equals))] = text.substr(equals + 1);
      }
    }
    for (const char* own : {"WEFT_LISTENER_FD", "WEFT_LAUNCHER_FD"}) values_.erase(own);
  }

  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }

  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : values_) out.push_back(name + "=" + value);
    return out;
  }

 private:
  std::map<std::string, std::string> values_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Parameters of a child process, prepared before the fork: between fork and exec it must not
// allocate.
struct Child {
  std::vector<std::string> command, variables;
  std::vector<char*> arguments = {}, environment = {};
  int input = -1, output = -1, error = -1;  // -1: inherited
  int listener = -1;                        // stays open
  int launcher = -1;                        // stays open
  int complaint = -1;                       // receives errno if the program cannot be started
  const GroupKeeper* keeper = nullptr;
  pid_t parent = 0;
};

[[noreturn]] void become(const Child& child) {
  // A separate process group, so that processes started by the rank can be killed with it.
  ::setpgid(0, 0);
  child.keeper->add(::getpid());
  // The rank is killed with the launcher, even if the launcher exited before this line. Processes
  // that it starts (if it is a shell) are not: the keeper kills those.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != child.parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  if (child.input >= 0) ::dup2(child.input, STDIN_FILENO);
  if (child.output >= 0) ::dup2(child.output, STDOUT_FILENO);
  if (child.error >= 0) ::dup2(child.error, STDERR_FILENO);
  for (const int kept : {child.listener, child.launcher})
    if (kept >= 0) ::fcntl(kept, F_SETFD, 0);
  ::execvpe(child.arguments[0], child.arguments.data(), child.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(child.complaint, &error, sizeof error);
  ::_exit(127);
}

// Buffered output of a rank; whole lines are passed on.
struct Tap {
  Descriptor pipe;
  Stream stream = Stream::output;
  std::string line;
};

struct Running {
  RankEnd end;
  Descriptor process;  // pidfd: readable when the process exits
  std::vector<Tap> taps;
  bool done = false;
};

class Launch {
 public:
  explicit Launch(const LaunchOptions& options) : options_(options) {}

  // No rank outlives this object.
  ~Launch() {
    tell_all(SIGKILL);
    for (Running& rank : running_) {
      if (rank.done) continue;
      keeper_.remove(rank.end.process);
      ::waitpid(rank.end.process, nullptr, 0);
    }
    if (signals_) ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }

  Result<LaunchEnd> run() {
    if (options_.forward_signals) catch_signals();
    WEFT_TRY_STATUS(start_all());
    const auto begun = Clock::now();
    if (options_.timeout.count() > 0) end_at_ = begun + options_.timeout;
    while (std::ranges::any_of(running_, [](const Running& rank) { return !rank.done; })) step();
    for (Running& rank : running_) end_.ranks.push_back(rank.end);
    return std::move(end_);
  }

 private:
  Status start_all();
  Status start(std::int32_t rank, Variables variables, const tcp::Socket& listener);
  void catch_signals();
  void step();
  void hurry();
  void tell_all(int signal);
  void read(std::int32_t rank, Tap& tap, bool last);
  void reap(std::int32_t rank);

  const LaunchOptions& options_;
  std::vector<Running> running_;
  std::vector<std::int32_t> failed_;  // not stopped by us, in order
  LaunchEnd end_;
  Pipe life_;  // closes when this process exits
  GroupKeeper keeper_;
  Descriptor signals_;
  sigset_t old_mask_ = {};
  bool stopping_ = false;                                 // ranks that exit from now on do so because of us
  Clock::time_point end_at_ = Clock::time_point::max();   // then SIGTERM
  Clock::time_point kill_at_ = Clock::time_point::max();  // then SIGKILL
};

Status Launch::start_all() {
  const std::string host = "127.0.0.1";
  WEFT_TRY(listener, tcp::listen(host, 0));
  WEFT_TRY(meeting, tcp::local_address(listener));
  // A free port, for programs that open their own store there.
  WEFT_TRY(spare, tcp::listen(host, 0));
  WEFT_TRY(store, tcp::local_address(spare));
  spare.close();
  WEFT_TRY(life, make_pipe());
  life_ = std::move(life);
  WEFT_TRY(keeper, GroupKeeper::start());
  keeper_ = std::move(keeper);

  Variables variables;
  variables.set("WORLD_SIZE", std::to_string(options_.ranks));
  variables.set("LOCAL_WORLD_SIZE", std::to_string(options_.ranks));
  variables.set("MASTER_ADDR", host);
  variables.set("MASTER_PORT", std::to_string(store.port()));
  variables.set("WEFT_PORT", std::to_string(meeting.port()));
  variables.set("WEFT_JOB_SECRET", new_secret());
  variables.set("WEFT_LAUNCHER_FD", std::to_string(life_.read.descriptor()));
  for (std::int32_t rank = 0; rank < options_.ranks; ++rank)
    WEFT_TRY_STATUS(start(rank, variables, listener));
  return {};
}

Status Launch::start(std::int32_t rank, Variables variables, const tcp::Socket& listener) {
  variables.set("RANK", std::to_string(rank));
  variables.set("LOCAL_RANK", std::to_string(rank));
  if (rank == 0) variables.set("WEFT_LISTENER_FD", std::to_string(listener.descriptor()));
  for (const auto& [name, value] : options_.environment) variables.set(name, value);

  Child child{.command = options_.command,
              .variables = variables.lines(),
              .launcher = life_.read.descriptor(),
              .keeper = &keeper_,
              .parent = ::getpid()};
  child.arguments = pointers(child.command);
  child.environment = pointers(child.variables);
  if (rank == 0) child.listener = listener.descriptor();
  // A rank in its own process group may not read from the terminal.
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (rank != 0 || ::isatty(STDIN_FILENO) == 1) child.input = nothing.descriptor();

  Running running;
  Pipe output, error;
  if (options_.on_line) {
    WEFT_TRY(first, make_pipe());
    WEFT_TRY(second, make_pipe());
    output = std::move(first), error = std::move(second);
    child.output = output.write.descriptor(), child.error = error.write.descriptor();
    ::fcntl(output.read.descriptor(), F_SETFL, O_NONBLOCK);
    ::fcntl(error.read.descriptor(), F_SETFL, O_NONBLOCK);
    running.taps.push_back({std::move(output.read), Stream::output, {}});
    running.taps.push_back({std::move(error.read), Stream::error, {}});
  }
  WEFT_TRY(complaint, make_pipe());
  child.complaint = complaint.write.descriptor();

  const pid_t process = ::fork();
  if (process < 0) return no_process(errno);
  if (process == 0) become(child);
  ::setpgid(process, process);  // also done by the child: whichever is first
  running.end.process = process;
  running.process = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  running_.push_back(std::move(running));
  complaint.write.close();
  int code = 0;
  ssize_t came = 0;
  do came = ::read(complaint.read.descriptor(), &code, sizeof code);
  while (came < 0 && errno == EINTR);
  if (came != sizeof code) return {};
  std::string why = std::strerror(code);
  why[0] = to_lower(why[0]);
  return user_error(fmt::format("cannot start {}: {}", options_.command.front(), why));
}

void Launch::catch_signals() {
  sigset_t caught;
  ::sigemptyset(&caught);
  ::sigaddset(&caught, SIGINT);
  ::sigaddset(&caught, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &caught, &old_mask_);
  signals_ = Descriptor(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
}

void Launch::tell_all(int signal) {
  for (const Running& rank : running_) {
    if (!rank.done) ::kill(-rank.end.process, signal);
  }
}

void Launch::step() {
  std::vector<pollfd> wanted = {{signals_.descriptor(), POLLIN, 0}};
  bool blind = false;  // no pidfd: a kernel before 5.3
  for (const Running& rank : running_) {
    if (rank.done) continue;
    blind = blind || !rank.process;
    wanted.push_back({rank.process.descriptor(), POLLIN, 0});
    for (const Tap& tap : rank.taps) wanted.push_back({tap.pipe.descriptor(), POLLIN, 0});
  }
  const auto until = std::min(
      {end_at_, kill_at_, Clock::now() + (blind ? std::chrono::milliseconds(10) : std::chrono::hours(1))});
  ::poll(wanted.data(), wanted.size(), tcp::milliseconds_until(until));

  signalfd_siginfo signal = {};
  while (signals_ && ::read(signals_.descriptor(), &signal, sizeof signal) == sizeof signal) {
    stopping_ = end_.asked_to_end = true;
    tell_all(static_cast<int>(signal.ssi_signo));
    end_at_ = std::min(end_at_,
                       Clock::now() + (signal.ssi_signo == SIGTERM ? options_.stop_grace : options_.grace));
  }
  for (std::int32_t rank = 0; rank < options_.ranks; ++rank) reap(rank);
  if (!failed_.empty() && !end_.first_failure) {
    // Among ranks that exited since the last check, one that was killed has most likely caused the
    // others to fail.
    const auto killed = [&](std::int32_t rank) {
      return running_[static_cast<std::size_t>(rank)].end.signal != 0;
    };
    const auto culprit = std::ranges::find_if(failed_, killed);
    end_.first_failure = culprit == failed_.end() ? failed_.front() : *culprit;
    end_at_ = std::min(end_at_, Clock::now() + options_.grace);
  }
  hurry();
}

void Launch::hurry() {
  const auto now = Clock::now();
  if (now >= end_at_) {
    end_.timed_out = end_.timed_out || (!stopping_ && !end_.first_failure);
    stopping_ = true;
    tell_all(SIGTERM);
    // A stopped process handles no other signal.
    tell_all(SIGCONT);
    end_at_ = Clock::time_point::max();
    kill_at_ = now + kLastWarning;
  }
  if (now >= kill_at_) {
    tell_all(SIGKILL);
    kill_at_ = Clock::time_point::max();
  }
}

void Launch::read(std::int32_t rank, Tap& tap, bool last) {
  std::array<char, 16 << 10> buffer;
  while (tap.pipe) {
    const ssize_t came = ::read(tap.pipe.descriptor(), buffer.data(), buffer.size());
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && errno == EAGAIN) break;
    if (came <= 0) tap.pipe.close();
    if (came <= 0) break;
    tap.line.append(buffer.data(), static_cast<std::size_t>(came));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = tap.line.find('\n', begin)) != std::string::npos; begin = end + 1) {
      options_.on_line(rank, tap.stream, std::string_view(tap.line).substr(begin, end - begin));
    }
    tap.line.erase(0, begin);
    if (tap.line.size() > kLongestLine) options_.on_line(rank, tap.stream, std::exchange(tap.line, {}));
  }
  if (last && !tap.line.empty()) options_.on_line(rank, tap.stream, std::exchange(tap.line, {}));
}

void Launch::reap(std::int32_t rank) {
  Running& running = running_[static_cast<std::size_t>(rank)];
  if (running.done) return;
  for (Tap& tap : running.taps) read(rank, tap, false);
  siginfo_t about = {};
  const auto process = static_cast<id_t>(running.end.process);
  if (::waitid(P_PID, process, &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == 0) return;
  // Until the rank is reaped its pid cannot be reused, so its leftover process group can be killed
  // safely.
  ::kill(-running.end.process, SIGKILL);
  keeper_.remove(running.end.process);
  ::waitid(P_PID, process, &about, WEXITED);
  for (Tap& tap : running.taps) read(rank, tap, true);
  running.done = true;
  running.process.close();
  (about.si_code == CLD_EXITED ? running.end.exit_code : running.end.signal) = about.si_status;
  running.end.stopped = stopping_ && !running.end.ok();
  if (!running.end.ok() && !stopping_) failed_.push_back(rank);
}

}  // namespace

int LaunchEnd::code() const {
  if (first_failure) return ranks[static_cast<std::size_t>(*first_failure)].code();
  const auto bad = std::ranges::find_if(ranks, [](const RankEnd& end) { return !end.ok(); });
  return bad == ranks.end() ? 0 : bad->code();
}

std::string LaunchEnd::what() const {
  if (timed_out) return "the ranks did not exit within the timeout";
  if (!first_failure)
    return code() == 0 ? std::string() : "the ranks were stopped by a signal to the launcher";
  const RankEnd& end = ranks[static_cast<std::size_t>(*first_failure)];
  if (end.signal != 0)
    return fmt::format("rank {} (pid {}) was killed by signal {}", *first_failure, end.process, end.signal);
  return fmt::format("rank {} (pid {}) exited with code {}", *first_failure, end.process, end.exit_code);
}

Result<LaunchEnd> launch(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > 4096) {
    return user_error(fmt::format("a launch starts 1 to 4096 ranks: {}", options.ranks));
  }
  if (options.command.empty()) return user_error("there is no program to launch");
  return Launch(options).run();
}

}  // namespace weft::transport
