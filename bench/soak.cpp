// soak -- ranks that run collectives for a given time and check every element of every result.
//
//   bench_soak [--seconds 120] [--ranks 4] [--transport shm|tcp|both] [--seed 1] [--only KIND]
//   mpirun -n 4 bench_soak [--seconds 120] [--transport mpi]     or weft launch -n 4, torchrun: one rank each
//
// Runs collectives of all kinds and many sizes, calls of both priorities in flight together, groups
// that are split off and dropped, and tagged messages. Each call runs once first, to open all
// connections. After that, memory and open files must not grow. Fails if a result was wrong, a call
// failed, or something grew.

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/rendezvous.h"

namespace {

using Clock = std::chrono::steady_clock;
using weft::Status;
using weft::comm::Communicator;
using weft::comm::ElementType;
using weft::comm::ReduceOp;

struct Settings {
  int seconds = 120;
  int ranks = 4;
  std::string transport = "both";
  std::uint64_t seed = 1;
  int only = -1;  // only this kind of call, to find which of them grows
};

constexpr std::array<std::int64_t, 7> kCounts = {1, 7, 60, 1000, 5003, 40'000, 300'000};
constexpr int kKinds = 9;

// An element of a rank's block for `to`: a whole number, so that sums of floats are exact.
float element(std::int32_t from, std::int32_t to, std::int64_t i) {
  return static_cast<float>((from * 31 + to * 7 + i) % 251);
}

class Rank {
 public:
  Rank(Communicator& group, std::uint64_t seed, int only) : group_(group), random_(seed), only_(only) {}

  // Each kind at each size from each root, so that nothing is new afterwards.
  Status everything_once() {
    for (int kind = 0; kind < kKinds; ++kind)
      for (const std::int64_t count : kCounts)
        for (root_ = 0; root_ < (kind == 4 || kind == 5 ? group_.size() : 1); ++root_)
          WEFT_TRY_STATUS(call(kind, count));
    return {};
  }
  Status one() {
    root_ = static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(group_.size())));
    if (only_ >= 0) return call(only_, kCounts[random_.below(kCounts.size())]);
    const auto kind = static_cast<int>(random_.below(kKinds));
    // Splits make and end a group, which is expensive, so they are rarer than other calls.
    if (kind == kKinds - 1 && random_.below(20) != 0) return call(0, kCounts[random_.below(3)]);
    return call(kind, kCounts[random_.below(kCounts.size())]);
  }
  std::int64_t calls() const { return calls_; }

 private:
  Status call(int kind, std::int64_t count) {
    ++calls_;
    const std::int32_t ranks = group_.size(), me = group_.rank();
    const std::size_t size = static_cast<std::size_t>(count), all = size * static_cast<std::size_t>(ranks);
    switch (kind) {
      case 0:
        fill(0, size, me, me);
        WEFT_TRY_STATUS(group_.all_reduce(in_.data(), take(size), count, ElementType::f32));
        return summed("all_reduce", size, [](std::int32_t from) { return from; });
      case 1:
        in_.resize(all);
        for (std::int32_t to = 0; to < ranks; ++to) fill(static_cast<std::size_t>(to) * size, size, me, to);
        WEFT_TRY_STATUS(group_.reduce_scatter(in_.data(), take(size), count, ElementType::f32));
        return summed("reduce_scatter", size, [me](std::int32_t) { return me; });
      case 2:
        fill(0, size, me, me);
        WEFT_TRY_STATUS(group_.all_gather(in_.data(), take(all), count, ElementType::f32));
        return blocks("all_gather", size, [](std::int32_t from) { return std::pair{from, from}; });
      case 3:
        in_.resize(all);
        for (std::int32_t to = 0; to < ranks; ++to) fill(static_cast<std::size_t>(to) * size, size, me, to);
        WEFT_TRY_STATUS(group_.all_to_all(in_.data(), take(all), count, ElementType::f32));
        return blocks("all_to_all", size, [me](std::int32_t from) { return std::pair{from, me}; });
      case 4:
        fill(0, size, me, me);
        WEFT_TRY_STATUS(group_.broadcast(in_.data(), take(size), count, ElementType::f32, root_));
        return expect("broadcast", 0, size, root_, root_);
      case 5:
        fill(0, size, me, me);
        WEFT_TRY_STATUS(group_.reduce(in_.data(), take(size), count, ElementType::f32, ReduceOp::sum, root_));
        if (me != root_) return {};
        return summed("reduce", size, [](std::int32_t from) { return from; });
      case 6: return in_flight(count);
      case 7: return messages(count);
      default: return split(count);
    }
  }

  // A long call followed by a high-priority one.
  Status in_flight(std::int64_t count) {
    const std::size_t size = static_cast<std::size_t>(count);
    fill(0, size, group_.rank(), group_.rank());
    take(size);
    std::array<std::int32_t, 3> urgent = {group_.rank(), 1, -group_.rank()};
    WEFT_TRY(slow, group_.start({.kind = weft::comm::Kind::all_reduce,
                                 .input = in_.data(),
                                 .output = out_.data(),
                                 .count = count}));
    WEFT_TRY(fast, group_.start({.kind = weft::comm::Kind::all_reduce,
                                 .input = urgent.data(),
                                 .output = urgent.data(),
                                 .count = 3,
                                 .type = ElementType::i32,
                                 .priority = weft::comm::Priority::high}));
    WEFT_TRY_STATUS(fast.wait());
    WEFT_TRY_STATUS(slow.wait());
    const std::int32_t ranks = group_.size(), sum = ranks * (ranks - 1) / 2;
    if (urgent != std::array{sum, ranks, -sum}) return wrong("a high-priority all_reduce", 0);
    return summed("an all_reduce in flight", size, [](std::int32_t from) { return from; });
  }

  // Around the ring, with one tag per message.
  Status messages(std::int64_t count) {
    count = std::min<std::int64_t>(count, 5003);
    const std::int32_t ranks = group_.size(), me = group_.rank();
    const std::int32_t from = (me + ranks - 1) % ranks;
    const std::size_t size = static_cast<std::size_t>(count);
    fill(0, size, me, me);
    const auto tag = static_cast<weft::comm::Tag>(calls_ % 1000);
    WEFT_TRY(sent, group_.send_tagged(in_.data(), count, ElementType::f32, (me + 1) % ranks, tag));
    take(size);
    WEFT_TRY(got, group_.receive_tagged(out_.data(), count, ElementType::f32, from, tag));
    if (!sent || !got.has_value() || got->count != count) return wrong("a message", 0);
    return expect("a message", 0, size, from, from);
  }

  // Even and odd ranks separately.
  Status split(std::int64_t count) {
    const std::size_t size = static_cast<std::size_t>(count);
    const std::int32_t colour = group_.rank() % 2;
    WEFT_TRY(half, group_.split(colour, 0));
    fill(0, size, group_.rank(), group_.rank());
    WEFT_TRY_STATUS(half->all_reduce(in_.data(), take(size), count, ElementType::f32));
    for (std::size_t i = 0; i < size; ++i) {
      float sum = 0;
      for (std::int32_t from = colour; from < group_.size(); from += 2)
        sum += element(from, from, static_cast<std::int64_t>(i));
      if (out_[i] != sum) return wrong("all_reduce of half the ranks", i);
    }
    return {};
  }

  void fill(std::size_t at, std::size_t size, std::int32_t from, std::int32_t to) {
    if (in_.size() < at + size) in_.resize(at + size);
    for (std::size_t i = 0; i < size; ++i) in_[at + i] = element(from, to, static_cast<std::int64_t>(i));
  }
  // The output buffer, overwritten so that no old value can be right by chance.
  float* take(std::size_t size) {
    out_.assign(std::max(out_.size(), size), -1.0F);
    return out_.data();
  }
  template <typename To>
  Status summed(const char* what, std::size_t size, const To& to) {
    for (std::size_t i = 0; i < size; ++i) {
      float sum = 0;
      for (std::int32_t from = 0; from < group_.size(); ++from)
        sum += element(from, to(from), static_cast<std::int64_t>(i));
      if (out_[i] != sum) return wrong(what, i);
    }
    return {};
  }
  template <typename Of>
  Status blocks(const char* what, std::size_t size, const Of& of) {
    for (std::int32_t block = 0; block < group_.size(); ++block) {
      const auto [from, to] = of(block);
      WEFT_TRY_STATUS(expect(what, static_cast<std::size_t>(block) * size, size, from, to));
    }
    return {};
  }
  Status expect(const char* what, std::size_t at, std::size_t size, std::int32_t from, std::int32_t to) {
    for (std::size_t i = 0; i < size; ++i)
      if (out_[at + i] != element(from, to, static_cast<std::int64_t>(i))) return wrong(what, at + i);
    return {};
  }
  Status wrong(const char* what, std::size_t i) const {
    return weft::user_error(
        fmt::format("rank {}: {} is wrong in element {}, call {}", group_.rank(), what, i, calls_));
  }

  Communicator& group_;
  weft::Random random_;
  int only_;
  std::vector<float> in_, out_;
  std::int32_t root_ = 0;
  std::int64_t calls_ = 0;
};

struct Use {
  double memory = 0;  // resident, MiB
  int descriptors = 0;
};

Use used() {
  Use use;
  long pages = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) == 2)
      use.memory = static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
    std::fclose(file);
  }
  if (DIR* const open = opendir("/proc/self/fd")) {
    while (readdir(open) != nullptr) ++use.descriptors;
    closedir(open);
  }
  return use;
}

Status soak(Communicator& group, const Settings& settings) {
  Rank rank(group, settings.seed, settings.only);
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  WEFT_TRY_STATUS(rank.everything_once());
  // Allocator caches settle in the first fifth.
  Use settled;
  bool is_settled = false;
  for (;;) {
    // One rank's clock decides, so that all ranks make the same number of calls.
    std::array<double, 1> now = {elapsed()};
    WEFT_TRY_STATUS(group.broadcast(now.data(), now.data(), 1, ElementType::f64, 0));
    if (!is_settled && now[0] > 0.2 * settings.seconds) {
      settled = used();
      is_settled = true;
    }
    if (now[0] >= settings.seconds) break;
    for (int i = 0; i < 100; ++i) WEFT_TRY_STATUS(rank.one());
  }
  const Use after = used();
  std::array<float, 3> worst = {static_cast<float>(after.memory - settled.memory),
                                static_cast<float>(after.descriptors - settled.descriptors),
                                static_cast<float>(after.memory)};
  WEFT_TRY_STATUS(
      group.all_reduce(worst.data(), worst.data(), 3, ElementType::f32, weft::comm::ReduceOp::max));
  const bool grew = worst[0] > 4 || worst[1] > 0;
  if (group.rank() == 0)
    fmt::print(
        "{}: {} calls on {} ranks in {:.0f} s, all elements correct; resident {:.0f} MiB, {:+.1f} since a "
        "fifth "
        "of the time, open files {:+.0f}{}\n",
        group.transport(), rank.calls(), group.size(), elapsed(), worst[2], worst[0], worst[1],
        grew ? ": BROKEN" : "");
  std::fflush(stdout);
  if (grew) return weft::user_error("memory or open files grew");
  return group.barrier();
}

int report(const Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: BROKEN\n", status.error().message);
  return 1;
}

weft::comm::Options options_of(weft::comm::TransportKind transport) {
  weft::comm::Options options;
  options.transport = transport;
  options.statistics = "none";
  return options;
}

int one_of_a_job(const Settings& settings) {
  const auto kind = settings.transport == "both" ? weft::comm::TransportKind::automatic
                                                 : *weft::comm::find_transport(settings.transport);
  auto group = weft::comm::connect(options_of(kind));
  if (!group.ok()) return report(group.error());
  return report(soak(**group, settings));
}

int start_ranks(const Settings& settings, weft::comm::TransportKind transport) {
  weft::transport::Rendezvous rendezvous;
  rendezvous.ranks = settings.ranks;
  rendezvous.name = fmt::format("soak-{}-{}", getpid(), name(transport));
  rendezvous.secret = weft::transport::new_secret();
  std::vector<pid_t> children;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      rendezvous.rank = rank;
      auto job = weft::transport::join(rendezvous);
      if (!job.ok()) _exit(report(job.error()));
      auto group = Communicator::create(std::shared_ptr(std::move(job).value()), options_of(transport));
      if (!group.ok()) _exit(report(group.error()));
      _exit(report(soak(**group, settings)));
    }
    children.push_back(child);
  }
  int broken = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) broken = 1;
  }
  return broken;
}

bool in_a_job() {
  constexpr const char* kMarks[] = {"RANK", "WEFT_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [](const char* mark) { return std::getenv(mark); });
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (argument == "--seconds")
      settings.seconds = std::max(1, std::atoi(value));
    else if (argument == "--ranks")
      settings.ranks = std::max(2, std::atoi(value));
    else if (argument == "--transport")
      settings.transport = value;
    else if (argument == "--seed")
      settings.seed = static_cast<std::uint64_t>(std::atoll(value));
    else if (argument == "--only")
      settings.only = std::clamp(std::atoi(value), 0, kKinds - 1);
    else {
      fmt::print(stderr,
                 "usage: bench_soak [--seconds N] [--ranks N] [--transport shm|tcp|both] [--seed N] [--only "
                 "0..8]\n");
      return 2;
    }
  }
  if (settings.transport != "both" && !weft::comm::find_transport(settings.transport)) {
    fmt::print(stderr, "unknown transport: {} (shm, tcp or both; mpi under mpirun)\n", settings.transport);
    return 2;
  }
  if (in_a_job()) return one_of_a_job(settings);
  int broken = 0;
  for (const auto kind : {weft::comm::TransportKind::shm, weft::comm::TransportKind::tcp})
    if (settings.transport == "both" || settings.transport == name(kind))
      broken |= start_ranks(settings, kind);
  return broken;
}
