// faults -- kills ranks at random moments and checks that the survivors recover.
//
//   bench_faults [--kills 100] [--ranks 4] [--transport shm|tcp|both] [--seed 1] [--stop-seconds 5]
//
// Each round starts ranks that run random collectives in a loop, and kills one of them with
// SIGKILL. Every survivor must get an error that names that rank, shrink the group, and continue
// with correct results. Afterwards no process, shared memory or socket may remain. Before the
// rounds, one rank is suspended for a while and resumed: a slow rank must not count as failed.
// Ranks also rendezvous while unrelated clients flood their port. Prints the detection times; fails
// if a check failed.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/communication/transport/tcp/socket.h"

namespace {

using namespace std::chrono_literals;
using weft::comm::Communicator;
using weft::comm::ElementType;
using Clock = std::chrono::steady_clock;

struct Settings {
  int kills = 100;
  int ranks = 4;
  std::string transport = "both";
  std::uint64_t seed = 1;
  int stop_seconds = 5;
};

std::int64_t now() { return Clock::now().time_since_epoch() / 1ns; }

// A rank's report to the parent, sent as one write to a pipe.
struct Report {
  enum What : std::int32_t { ready, heard, went_on, wrong };
  What what = ready;
  std::int32_t rank = 0;
  std::int64_t time = 0;
  char text[200] = {};
};

void report(int pipe, Report::What what, std::int32_t rank, const std::string& text) {
  Report message{.what = what, .rank = rank, .time = now()};
  std::copy_n(text.data(), std::min(text.size(), sizeof(message.text) - 1), message.text);
  if (write(pipe, &message, sizeof(message)) != sizeof(message)) _exit(9);
}

// One random collective, the same on every rank. Fails if the result is wrong.
weft::Status one_collective(Communicator& group, weft::Random& random, std::vector<float>& data,
                            bool& right) {
  constexpr std::int64_t kCounts[] = {1, 60, 1000, 40'000, 600'000};
  const std::int64_t count = kCounts[random.below(std::size(kCounts))];
  const auto ranks = static_cast<float>(group.size());
  const auto size = static_cast<std::size_t>(count);
  const auto kind = random.below(3);
  data.assign(size * static_cast<std::size_t>(group.size()), static_cast<float>(group.rank()));
  if (kind == 0) {
    const weft::Status status = group.all_reduce(data.data(), data.data(), count, ElementType::f32);
    right = data[size - 1] == ranks * (ranks - 1) / 2;
    return status;
  }
  if (kind == 1) {
    const std::vector<float> mine(size, static_cast<float>(group.rank()));
    const weft::Status status = group.all_gather(mine.data(), data.data(), count, ElementType::f32);
    right = data.back() == ranks - 1;
    return status;
  }
  const auto root = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(group.size())));
  const weft::Status status = group.broadcast(data.data(), data.data(), count, ElementType::f32, root);
  right = data[size - 1] == static_cast<float>(root);
  return status;
}

int run_rank(const weft::transport::Rendezvous& rendezvous, const weft::comm::Options& options,
             std::uint64_t seed, int pipe) {
  const std::int32_t rank = rendezvous.rank;
  auto job = weft::transport::join(rendezvous);
  if (!job.ok()) {
    report(pipe, Report::wrong, rank, job.error().message);
    return 1;
  }
  auto made = Communicator::create(std::shared_ptr(std::move(job).value()), options);
  if (!made.ok()) {
    report(pipe, Report::wrong, rank, made.error().message);
    return 1;
  }
  std::unique_ptr<Communicator> group = std::move(made).value();
  report(pipe, Report::ready, rank, "");
  weft::Random random(seed);
  std::vector<float> data;
  bool right = true;
  for (;;) {
    const weft::Status status = one_collective(*group, random, data, right);
    if (!status.ok()) {
      report(pipe, Report::heard, rank, status.error().message);
      break;
    }
    if (!right) {
      report(pipe, Report::wrong, rank, "a collective gave the wrong result");
      return 1;
    }
  }
  auto survivors = group->shrink();
  if (!survivors.ok()) {
    report(pipe, Report::wrong, rank, survivors.error().message);
    return 1;
  }
  weft::Random again(seed + 1);
  for (int i = 0; i < 20; ++i) {
    const weft::Status status = one_collective(**survivors, again, data, right);
    if (!status.ok() || !right) {
      report(pipe, Report::wrong, rank, status.ok() ? "wrong result after shrink()" : status.error().message);
      return 1;
    }
  }
  // Keeps ranks alive until no other needs them.
  (void)(*survivors)->barrier();
  report(pipe, Report::went_on, rank, "");
  return 0;
}

// What a job might leave behind: names in /dev/shm, sockets, open files of the parent. Other
// programs may run meanwhile.
struct Traces {
  std::size_t shared_memory = 0, sockets = 0, descriptors = 0;

  // Ignores what other programs removed meanwhile.
  bool is_more_than(const Traces& before) const {
    return shared_memory > before.shared_memory || sockets > before.sockets ||
           descriptors > before.descriptors;
  }
};

std::vector<std::string> list(const char* folder) {
  std::vector<std::string> names;
  if (DIR* const open = opendir(folder)) {
    while (const dirent* const entry = readdir(open)) names.emplace_back(entry->d_name);
    closedir(open);
  }
  return names;
}

// Our sockets contain the names of our jobs and the numbers of our ranks.
std::vector<std::string> marks = {fmt::format("faults-{}", getpid())};

Traces look_for_traces() {
  Traces traces{.descriptors = list("/proc/self/fd").size()};
  for (const std::string& name : list("/dev/shm"))
    traces.shared_memory += name.find("weft") != std::string::npos;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const auto is_ours = [&](const std::string& mark) { return line.find(mark) != std::string::npos; };
    traces.sockets += std::any_of(marks.begin(), marks.end(), is_ours);
  }
  return traces;
}

class Round {
 public:
  Round(const Settings& settings, weft::comm::TransportKind transport, std::uint64_t number)
      : settings_(settings), random_(settings.seed, number) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    read_end_ = ends[0];
    weft::transport::Rendezvous rendezvous;
    rendezvous.ranks = settings.ranks;
    rendezvous.name = fmt::format("faults-{}-{}", getpid(), number);
    rendezvous.secret = weft::transport::new_secret();
    weft::comm::Options options;
    options.transport = transport;
    options.statistics = "none";
    for (int rank = 0; rank < settings.ranks; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        close(ends[0]);
        alarm(120);  // ends the process in any case
        rendezvous.rank = rank;
        _exit(run_rank(rendezvous, options, number, ends[1]));
      }
      children_.push_back(child);
      marks.push_back(fmt::format("weft-doctor-{}", child));
    }
    close(ends[1]);
  }

  ~Round() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
    close(read_end_);
  }

  // Reports of that kind from all ranks but `without`. Empty if one is late or reports an error.
  std::vector<Report> collect(Report::What what, int without, std::chrono::milliseconds limit) {
    std::vector<Report> reports;
    const auto deadline = Clock::now() + limit;
    while (static_cast<int>(reports.size()) < settings_.ranks - (without < 0 ? 0 : 1)) {
      pollfd wait{.fd = read_end_, .events = POLLIN, .revents = 0};
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) {
        std::printf("  only %zu ranks reported\n", reports.size());
        return {};
      }
      Report report;
      if (read(read_end_, &report, sizeof(report)) != sizeof(report)) return {};
      if (report.what == Report::wrong || (report.what == Report::heard && what == Report::ready)) {
        std::printf("  rank %d: %s\n", report.rank, report.text);
        return {};
      }
      if (report.what == what) {
        reports.push_back(report);
      } else {
        early_.push_back(report);
      }
    }
    return reports;
  }

  bool stop_and_go_on(int seconds) {
    if (collect(Report::ready, -1, 20s).empty()) return false;
    const pid_t victim = children_[random_.below(children_.size())];
    kill(victim, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    kill(victim, SIGCONT);
    std::this_thread::sleep_for(500ms);
    pollfd wait{.fd = read_end_, .events = POLLIN, .revents = 0};
    return poll(&wait, 1, 0) == 0;  // no error was reported
  }

  // Milliseconds until the last survivor was notified; negative if a check failed.
  double kill_one() {
    if (collect(Report::ready, -1, 20s).empty()) return -1;
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(60'000)));
    const int victim = static_cast<int>(random_.below(children_.size()));
    const std::int64_t killed_at = now();
    kill(children_[static_cast<std::size_t>(victim)], SIGKILL);
    const std::vector<Report> heard = collect(Report::heard, victim, 10s);
    if (heard.empty()) return -1;
    std::int64_t last = killed_at;
    for (const Report& one : heard) {
      last = std::max(last, one.time);
      if (std::strstr(one.text, fmt::format("rank {}", victim).c_str()) == nullptr) {
        std::printf("  rank %d got another error than the failure of rank %d: %s\n", one.rank, victim,
                    one.text);
        return -1;
      }
    }
    const int gone_on =
        static_cast<int>(collect(Report::went_on, victim, 20s).size()) + static_cast<int>(early_.size());
    if (gone_on < settings_.ranks - 1) return -1;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      int status = 0;
      waitpid(children_[i], &status, 0);
      if (static_cast<int>(i) != victim && status != 0) {
        std::printf("  rank %zu ended with status %d\n", i, status);
        children_.clear();
        return -1;
      }
    }
    children_.clear();
    return static_cast<double>(last - killed_at) / 1e6;
  }

 private:
  const Settings& settings_;
  weft::Random random_;
  std::vector<pid_t> children_;
  std::vector<Report> early_;
  int read_end_ = -1;
};

// Connects to a port in a loop: silent, with valid hellos, and with partial hellos. Never returns.
void flood(std::uint16_t port, int counter) {
  const std::string hello = "weft-2\n\n" + std::string(32, 'x');
  std::deque<weft::transport::tcp::Socket> held;
  for (std::uint64_t calls = 0;; ++calls) {
    auto socket = weft::transport::tcp::connect("127.0.0.1", port, Clock::now() + 1s);
    if (!socket.ok()) continue;
    const std::size_t said = calls % 3 == 0 ? 0 : calls % 3 == 1 ? hello.size() : 1 + calls % 39;
    send(socket->descriptor(), hello.data(), said, MSG_NOSIGNAL);
    held.push_back(std::move(*socket));
    if (held.size() > 300) held.pop_front();
    const char one = 1;
    [[maybe_unused]] const ssize_t counted = write(counter, &one, 1);
  }
}

// Repeats the rendezvous of ranks at a port while other clients flood it.
bool meet_in_a_flood(int ranks, int meetings) {
  auto listener = weft::transport::tcp::listen("127.0.0.1", 0);
  int counter[2];
  if (!listener.ok() || pipe2(counter, O_NONBLOCK) != 0) return false;
  const std::uint16_t port = weft::transport::tcp::local_address(*listener)->port();
  std::vector<pid_t> strangers(8);
  for (pid_t& stranger : strangers)
    if (stranger = fork(); stranger == 0) flood(port, counter[1]);
  int met = 0;
  std::size_t calls = 0;
  const auto begin = Clock::now();
  for (int meeting = 0; meeting < meetings; ++meeting) {
    weft::transport::Rendezvous rendezvous;
    rendezvous.ranks = ranks;
    rendezvous.address = "127.0.0.1";
    rendezvous.port = port;
    rendezvous.secret = weft::transport::new_secret();
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        rendezvous.rank = rank;
        if (rank == 0) rendezvous.listener = dup(listener->descriptor());
        const auto job = weft::transport::join(rendezvous);
        if (!job.ok()) std::printf("  rank %d: %s\n", rank, job.error().message.c_str());
        _exit(job.ok() ? 0 : 1);
      }
      children.push_back(child);
    }
    bool all = true;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      all = all && status == 0;
    }
    met += all ? 1 : 0;
    std::array<char, 1 << 16> some;
    for (ssize_t got = 0; (got = read(counter[0], some.data(), some.size())) > 0;)
      calls += static_cast<std::size_t>(got);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const pid_t stranger : strangers) kill(stranger, SIGKILL);
  for (const pid_t stranger : strangers) waitpid(stranger, nullptr, 0);
  close(counter[0]);
  close(counter[1]);
  std::printf("a flood of %.0f connections per second: %d of %d rendezvous of %d ranks, %.0f ms each%s\n",
              static_cast<double>(calls) / seconds, met, meetings, ranks, seconds / meetings * 1e3,
              met == meetings ? "" : ": BROKEN");
  return met == meetings;
}

int judge(const Settings& settings) {
  const Traces before = look_for_traces();
  std::vector<weft::comm::TransportKind> transports;
  for (const auto kind : {weft::comm::TransportKind::shm, weft::comm::TransportKind::tcp}) {
    if (settings.transport == "both" || settings.transport == name(kind)) transports.push_back(kind);
  }
  if (transports.empty()) {
    std::fprintf(stderr, "unknown transport: %s (shm, tcp or both)\n", settings.transport.c_str());
    return 2;
  }
  int broken = 0;
  std::uint64_t number = 1;
  for (const auto transport : transports) {
    if (settings.stop_seconds == 0) break;
    const bool fine = Round(settings, transport, number++).stop_and_go_on(settings.stop_seconds);
    std::printf("%s: a rank stopped for %d s: %s\n", std::string(name(transport)).c_str(),
                settings.stop_seconds, fine ? "no rank reported it as failed" : "BROKEN");
    broken += fine ? 0 : 1;
  }
  broken += meet_in_a_flood(settings.ranks, 20) ? 0 : 1;
  for (const auto transport : transports) {
    std::vector<double> times;
    for (int i = 0; i < settings.kills; ++i) {
      const double milliseconds = Round(settings, transport, number).kill_one();
      if (milliseconds < 0) {
        std::printf("  %s, round %d, seed %llu: BROKEN\n", std::string(name(transport)).c_str(), i,
                    static_cast<unsigned long long>(number));
        ++broken;
      } else {
        times.push_back(milliseconds);
      }
      ++number;
    }
    std::sort(times.begin(), times.end());
    if (times.empty()) continue;
    std::printf(
        "%s: %zu of %d kills of %d ranks: all survivors were notified after %.1f ms (median), %.1f ms "
        "(worst)\n",
        std::string(name(transport)).c_str(), times.size(), settings.kills, settings.ranks,
        times[times.size() / 2], times.back());
  }
  if (const Traces after = look_for_traces(); after.is_more_than(before)) {
    std::printf("left behind: %zu names in /dev/shm (%zu before), %zu sockets (%zu), %zu open files (%zu)\n",
                after.shared_memory, before.shared_memory, after.sockets, before.sockets, after.descriptors,
                before.descriptors);
    ++broken;
  } else {
    std::printf("nothing left behind: no shared memory, no socket, no process\n");
  }
  return broken == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (i + 1 >= argc) {
      std::fprintf(stderr,
                   "usage: bench_faults [--kills N] [--ranks N] [--transport shm|tcp|both] [--seed N] "
                   "[--stop-seconds N]\n");
      return 2;
    }
    const char* const value = argv[++i];
    if (argument == "--kills") settings.kills = std::atoi(value);
    if (argument == "--ranks") settings.ranks = std::max(2, std::atoi(value));
    if (argument == "--transport") settings.transport = value;
    if (argument == "--seed") settings.seed = static_cast<std::uint64_t>(std::atoll(value));
    if (argument == "--stop-seconds") settings.stop_seconds = std::atoi(value);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return judge(settings);
}
