#include "weft/runtime/measure/bench_machine.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace weft::measure {
namespace {

using collective::Kind;

constexpr double kMostCopied = 256 << 20;  // larger sizes are extrapolated
constexpr double kTurnSeconds = 0.004;
constexpr int kTurns = 5;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A limit is what the machine can do when other processes do not disturb it.
double best(const std::vector<double>& seconds) { return *std::ranges::min_element(seconds); }

// Measures one thread's time to copy `bytes` while other threads do the same.
void copy_for_a_while(std::size_t bytes, std::atomic<int>& waiting, double& seconds) {
  const std::unique_ptr<char[]> source(new char[bytes]), target(new char[bytes]);
  std::memset(source.get(), 1, bytes);
  std::memset(target.get(), 2, bytes);
  waiting.fetch_sub(1);
  while (waiting.load() > 0) std::this_thread::yield();
  std::vector<double> times;
  double estimate = 0;
  for (int turn = 0; turn <= kTurns; ++turn) {
    const int calls = estimate > 0 ? std::max(1, static_cast<int>(kTurnSeconds / estimate)) : 1;
    const double begin = now_seconds();
    for (int i = 0; i < calls; ++i) {
      std::memcpy(target.get(), source.get(), bytes);
      // Keeps the compiler from removing the copy.
      asm volatile("" : : "r"(target.get()) : "memory");
    }
    estimate = (now_seconds() - begin) / calls;
    if (turn > 0) times.push_back(estimate);
  }
  seconds = best(times);
}

double measure_copy(double bytes, int threads) {
  const auto part = static_cast<std::size_t>(std::max(1.0, bytes / threads));
  std::atomic<int> waiting = threads;
  std::vector<double> seconds(static_cast<std::size_t>(threads), 0);
  {
    std::vector<std::jthread> crew;
    for (double& mine : seconds) crew.emplace_back([&] { copy_for_a_while(part, waiting, mine); });
  }
  return *std::ranges::max_element(seconds);
}

struct alignas(128) SharedFlag {
  std::atomic<int> turn{0};
};

double measure_flags() {
  // Short rounds, so that on a shared machine some are undisturbed.
  constexpr int kRounds = 50, kTrips = 100;
  SharedFlag ping, pong;
  const auto wait_for = [](const SharedFlag& flag, int value) {
    for (int spins = 0; flag.turn.load(std::memory_order_acquire) < value; ++spins)
      if (spins > 2000) std::this_thread::yield();
  };
  // Pins the two threads to different cores, to measure latency between cores.
  cpu_set_t all, one;
  const int here = sched_getcpu();
  const bool apart = sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) > 1 && here >= 0;
  CPU_ZERO(&one);
  if (apart) CPU_SET(here, &one);
  if (apart) sched_setaffinity(0, sizeof(one), &one);
  std::jthread other([&] {
    if (apart) {
      CPU_XOR(&one, &all, &one);
      sched_setaffinity(0, sizeof(one), &one);
    }
    for (int i = 1; i <= kRounds * kTrips; ++i) {
      wait_for(ping, i);
      pong.turn.store(i, std::memory_order_release);
    }
  });
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_seconds();
    for (int i = round * kTrips + 1; i <= (round + 1) * kTrips; ++i) {
      ping.turn.store(i, std::memory_order_release);
      wait_for(pong, i);
    }
    times.push_back((now_seconds() - begin) / (2 * kTrips));
  }
  other.join();
  if (apart) sched_setaffinity(0, sizeof(all), &all);
  return best(times);
}

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

// Connects two sockets over loopback; returns false on failure.
bool connect_pair(Descriptor& one, Descriptor& other) {
  Descriptor listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  one.number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* address = reinterpret_cast<sockaddr*>(&where);
  if (bind(listener.number, address, size) != 0 || listen(listener.number, 1) != 0) return false;
  if (getsockname(listener.number, address, &size) != 0) return false;
  if (connect(one.number, address, size) != 0) return false;
  other.number = accept4(listener.number, nullptr, nullptr, SOCK_CLOEXEC);
  const int on = 1;
  for (const int end : {one.number, other.number}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return other.number >= 0;
}

bool send_all(int socket, char* bytes, std::size_t size) {
  for (std::size_t at = 0; at < size;) {
    const ssize_t count = send(socket, bytes + at, size - at, MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += static_cast<std::size_t>(count);
  }
  return true;
}

bool receive_all(int socket, char* bytes, std::size_t size) {
  return recv(socket, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

}  // namespace

double least_copied(Kind kind, std::int32_t ranks, double message_bytes, bool in_place) {
  const double all = ranks * message_bytes, own = in_place ? message_bytes : 0;
  switch (kind) {
    case Kind::all_reduce: return all;
    case Kind::reduce_scatter: return (all + message_bytes) / 2;
    case Kind::all_gather: return (message_bytes + all - own) / 2;
    case Kind::all_to_all: return all - own;
    default: return all / 2;  // broadcast
  }
}

double least_sent(Kind kind, std::int32_t ranks, double message_bytes) {
  return (kind == Kind::all_reduce ? 2 : 1) * (ranks - 1) * message_bytes;
}

double BenchMachine::copy_seconds(double bytes, int threads) {
  const double measured = std::clamp(bytes, 1.0, kMostCopied);
  const auto [place, is_new] = copies_.try_emplace({static_cast<std::int64_t>(measured), threads}, 0);
  if (is_new) place->second = measure_copy(measured, threads);
  return place->second * std::max(1.0, bytes / measured);
}

double BenchMachine::shm_latency() {
  if (shm_latency_ == 0) shm_latency_ = measure_flags();
  return shm_latency_;
}

double BenchMachine::tcp_latency() {
  if (tcp_latency_ == 0) measure_tcp();
  return tcp_latency_;
}

double BenchMachine::tcp_rate() {
  if (tcp_rate_ == 0) measure_tcp();
  return tcp_rate_;
}

void BenchMachine::measure_tcp() {
  constexpr std::size_t kPing = 64, kPiece = 1 << 20;
  constexpr int kTrips = 2000, kPieces = 128;
  Descriptor one, other;
  if (!connect_pair(one, other)) return;
  std::jthread far([end = other.number] {
    std::vector<char> bytes(kPiece);
    for (int i = 0; i < kTrips; ++i)
      if (!receive_all(end, bytes.data(), kPing) || !send_all(end, bytes.data(), kPing)) return;
    for (int i = 0; i < kPieces; ++i)
      if (!receive_all(end, bytes.data(), kPiece)) return;
    send_all(end, bytes.data(), kPing);
  });
  std::vector<char> bytes(kPiece);
  double begin = now_seconds();
  for (int i = 0; i < kTrips; ++i)
    if (!send_all(one.number, bytes.data(), kPing) || !receive_all(one.number, bytes.data(), kPing)) return;
  tcp_latency_ = (now_seconds() - begin) / (2 * kTrips);
  begin = now_seconds();
  for (int i = 0; i < kPieces; ++i)
    if (!send_all(one.number, bytes.data(), kPiece)) return;
  if (!receive_all(one.number, bytes.data(), kPing)) return;
  tcp_rate_ = static_cast<double>(kPiece) * kPieces / (now_seconds() - begin);
}

double BenchMachine::limit(std::string_view transport, Kind kind, std::int32_t ranks, double message_bytes,
                           bool in_place) {
  const bool waits = kind != Kind::broadcast && ranks > 1;
  if (transport == "tcp") {
    const double rate = tcp_rate() * std::max(1, cores_ / 2);
    const double sent = rate > 0 ? least_sent(kind, ranks, message_bytes) / rate : 0;
    return std::max(sent, waits ? tcp_latency() : 0);
  }
  // At most as many threads as ranks, because a rank copies with one thread.
  const double copied = copy_seconds(least_copied(kind, ranks, message_bytes, in_place),
                                     std::clamp(cores_, 1, std::max(ranks, 1)));
  return std::max(copied, waits ? shm_latency() : 0);
}

}  // namespace weft::measure
