// all_reduce_check TRANSPORT [HOSTS DELAY_US RATE_MBIT] -- collectives among ranks that a launcher started.
//
//   RANK=0 WORLD_SIZE=8 MASTER_ADDR=10.77.0.1 MASTER_PORT=4711 all_reduce_check tcp
//   mpirun ... all_reduce_check mpi
//
// Runs every collective at several sizes and checks each element. With the network's figures it then times
// them and prints what no algorithm can beat on it beside; the figures that count are those of a bare socket
// between two hosts (one byte to and fro, one long stream), where MASTER_ADDR leads to one. Exits 0 when all
// results are right.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/comm/communicator.h"
#include "weft/transport/mpi/job.h"
#include "weft/transport/tcp/socket.h"

namespace {

using namespace weft;
using namespace weft::comm;

using Values = std::vector<float>;

// Element i that rank r puts in: small whole numbers, so that sums are exact in any order.
float input_at(std::int32_t rank, std::int64_t i) { return static_cast<float>((rank + 1) * (i % 13 + 1)); }

Values input_of(std::int32_t rank, std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = input_at(rank, i);
  return values;
}

float sum_at(std::int32_t ranks, std::int64_t i) {
  return static_cast<float>(ranks * (ranks + 1) / 2) * static_cast<float>(i % 13 + 1);
}

Status expect(std::string_view what, const Values& found,
              const std::function<float(std::int64_t)>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float value = expected(static_cast<std::int64_t>(i));
    if (found[i] != value)
      return world_error(fmt::format("{}: element {} is {}, expected {}", what, i, found[i], value));
  }
  return {};
}

// One collective of `count` elements a block: run and checked.
Status check_all_reduce(Communicator& group, std::int64_t count) {
  Values values = input_of(group.rank(), count);
  WEFT_TRY_STATUS(group.all_reduce(values.data(), values.data(), count, ElementType::f32));
  return expect("all_reduce", values, [&](std::int64_t i) { return sum_at(group.size(), i); });
}

Status check_reduce_scatter(Communicator& group, std::int64_t count) {
  const Values input = input_of(group.rank(), count * group.size());
  Values output(static_cast<std::size_t>(count));
  WEFT_TRY_STATUS(group.reduce_scatter(input.data(), output.data(), count, ElementType::f32));
  return expect("reduce_scatter", output,
                [&](std::int64_t i) { return sum_at(group.size(), group.rank() * count + i); });
}

Status check_all_gather(Communicator& group, std::int64_t count) {
  const Values input = input_of(group.rank(), count);
  Values output(static_cast<std::size_t>(count * group.size()));
  WEFT_TRY_STATUS(group.all_gather(input.data(), output.data(), count, ElementType::f32));
  return expect("all_gather", output,
                [&](std::int64_t i) { return input_at(static_cast<std::int32_t>(i / count), i % count); });
}

Status check_all_to_all(Communicator& group, std::int64_t count) {
  const Values input = input_of(group.rank(), count * group.size());
  Values output(static_cast<std::size_t>(count * group.size()));
  WEFT_TRY_STATUS(group.all_to_all(input.data(), output.data(), count, ElementType::f32));
  return expect("all_to_all", output, [&](std::int64_t i) {
    return input_at(static_cast<std::int32_t>(i / count), group.rank() * count + i % count);
  });
}

Status check_broadcast(Communicator& group, std::int64_t count) {
  const std::int32_t root = group.size() - 1;
  Values values = input_of(group.rank(), count);
  WEFT_TRY_STATUS(group.broadcast(values.data(), values.data(), count, ElementType::f32, root));
  return expect("broadcast", values, [&](std::int64_t i) { return input_at(root, i); });
}

Status check_rooted(Communicator& group, std::int64_t count) {
  const std::int32_t root = group.size() / 2;
  const bool here = group.rank() == root;
  const Values input = input_of(group.rank(), count);
  Values sum(here ? static_cast<std::size_t>(count) : 0);
  WEFT_TRY_STATUS(group.reduce(input.data(), sum.data(), count, ElementType::f32, ReduceOp::sum, root));
  WEFT_TRY_STATUS(expect("reduce", sum, [&](std::int64_t i) { return sum_at(group.size(), i); }));

  Values all(here ? static_cast<std::size_t>(count * group.size()) : 0);
  WEFT_TRY_STATUS(group.gather(input.data(), all.data(), count, ElementType::f32, root));
  WEFT_TRY_STATUS(expect("gather", all, [&](std::int64_t i) {
    return input_at(static_cast<std::int32_t>(i / count), i % count);
  }));

  const Values blocks = input_of(root, count * group.size());
  Values mine(static_cast<std::size_t>(count));
  WEFT_TRY_STATUS(group.scatter(blocks.data(), mine.data(), count, ElementType::f32, root));
  return expect("scatter", mine, [&](std::int64_t i) { return input_at(root, group.rank() * count + i); });
}

Status check_everything(Communicator& group) {
  for (const std::int64_t count : {1, 1000, 50'001}) {
    WEFT_TRY_STATUS(check_all_reduce(group, count));
    WEFT_TRY_STATUS(check_reduce_scatter(group, count));
    WEFT_TRY_STATUS(check_all_gather(group, count));
    WEFT_TRY_STATUS(check_all_to_all(group, count));
    WEFT_TRY_STATUS(check_broadcast(group, count));
    WEFT_TRY_STATUS(check_rooted(group, count));
    WEFT_TRY_STATUS(group.barrier());
  }
  return {};
}

struct Network {
  int hosts = 1;
  double delay = 0;             // seconds, one way
  double seconds_per_byte = 0;  // into and out of a host
};

// The least time for a message of so many bytes (the larger buffer of a rank), ranks evenly on the hosts;
// what happens within a host is free.
double bound(Kind kind, double bytes, std::int32_t ranks, const Network& network) {
  const double hosts = network.hosts, others = (hosts - 1) / hosts;
  const double line = bytes * network.seconds_per_byte;
  switch (kind) {
    case Kind::all_reduce:  // all to all hosts at once, or each host its part and then the parts
      return std::min(network.delay + (hosts - 1) * line, 2 * network.delay + 2 * others * line);
    case Kind::all_to_all: return network.delay + ranks / hosts * others * line;
    case Kind::broadcast:  // to all hosts from the root, or the last byte to one, which passes it on
      return std::min(network.delay + (hosts - 1) * line, (hosts > 2 ? 2 : 1) * network.delay + line);
    default: return network.delay + others * line;
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One end of a bare socket: bounces bytes, then sends or takes a stream. What the caller saw, in seconds: one
// way of one byte, and a byte of the stream.
struct Bare {
  double delay = 0, seconds_per_byte = 0;
};

Result<Bare> try_socket(const transport::tcp::Socket& socket, bool calls) {
  constexpr int kBounces = 21;
  constexpr std::size_t kPiece = 1 << 20, kWarm = 48, kTimed = 32;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::vector<std::byte> piece(kPiece);
  const std::span<std::byte> byte(piece.data(), 1);
  std::vector<double> rounds;
  const auto bounce = [&]() -> Status {
    if (calls) WEFT_TRY_STATUS(send_all(socket, byte, deadline));
    WEFT_TRY_STATUS(receive_all(socket, byte, deadline));
    return calls ? Status() : send_all(socket, byte, deadline);
  };
  const auto stream = [&](std::size_t pieces) -> Status {
    for (std::size_t i = 0; i < pieces; ++i)
      WEFT_TRY_STATUS(calls ? send_all(socket, piece, deadline) : receive_all(socket, piece, deadline));
    return {};
  };
  for (int i = 0; i < kBounces; ++i) {
    const auto start = std::chrono::steady_clock::now();
    WEFT_TRY_STATUS(bounce());
    rounds.push_back(seconds_since(start));
  }
  std::ranges::sort(rounds);
  const double round = rounds[rounds.size() / 2];
  WEFT_TRY_STATUS(stream(kWarm));  // until the kernel knows what the line takes
  WEFT_TRY_STATUS(bounce());
  const auto start = std::chrono::steady_clock::now();
  WEFT_TRY_STATUS(stream(kTimed));
  WEFT_TRY_STATUS(bounce());
  return Bare{round / 2, (seconds_since(start) - round) / static_cast<double>(kTimed * kPiece)};
}

// What a bare socket gets between the first two hosts.
Result<Network> sound_out(Communicator& group, Network network) {
  namespace tcp = transport::tcp;
  const char* address = std::getenv("MASTER_ADDR");
  if (address == nullptr || network.hosts < 2) return network;
  const std::int32_t other = group.size() / network.hosts;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  tcp::Socket listener;
  std::int64_t port = 0;
  if (group.rank() == 0) {
    WEFT_TRY(made, tcp::listen(address, 0));
    WEFT_TRY(local, tcp::local_address(made));
    port = local.port();
    listener = std::move(made);
  }
  WEFT_TRY_STATUS(group.broadcast(&port, &port, 1, ElementType::i64, 0));
  Bare bare;
  if (group.rank() == 0) {
    tcp::wait_for(listener, POLLIN, deadline);
    WEFT_TRY(socket, tcp::accept(listener));
    if (const auto seen = try_socket(socket, false); !seen.ok()) return seen.error();
  } else if (group.rank() == other) {
    WEFT_TRY(socket, tcp::connect(address, static_cast<std::uint16_t>(port), deadline));
    WEFT_TRY(seen, try_socket(socket, true));
    bare = seen;
  }
  double figures[] = {bare.delay, bare.seconds_per_byte};
  WEFT_TRY_STATUS(group.broadcast(figures, figures, 2, ElementType::f64, other));
  if (group.rank() == 0)
    fmt::print("a bare socket: {} one way, {:.0f} Mbit/s\n", print_seconds(figures[0]), 8e-6 / figures[1]);
  return Network{network.hosts, figures[0], figures[1]};
}

// The median over repetitions of the time from a common start to the last rank's end. The hosts are
// namespaces of one machine and have one clock: after a barrier some would start a delay later than others.
Result<double> time_of(Communicator& group, const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRepetitions = 7;
  constexpr std::chrono::milliseconds kAhead{10};
  std::vector<double> times;
  for (int i = -2; i < kRepetitions; ++i) {
    std::int64_t at = (Clock::now() + kAhead).time_since_epoch().count();
    WEFT_TRY_STATUS(group.broadcast(&at, &at, 1, ElementType::i64, 0));
    const Clock::time_point start{Clock::duration(at)};
    std::this_thread::sleep_until(start);
    WEFT_TRY_STATUS(group.run(call));
    double slowest = seconds_since(start);
    WEFT_TRY_STATUS(group.all_reduce(&slowest, &slowest, 1, ElementType::f64, ReduceOp::max));
    if (i >= 0) times.push_back(slowest);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

Status measure(Communicator& group, const Network& claimed) {
  WEFT_TRY(network, sound_out(group, claimed));
  const auto ranks = static_cast<std::int64_t>(group.size());
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast, Kind::all_to_all}) {
    for (const std::int64_t bytes : {1 << 10, 64 << 10, 1 << 20, 16 << 20}) {
      Values input(static_cast<std::size_t>(bytes) / sizeof(float)), output = input;
      const bool whole = kind == Kind::all_reduce || kind == Kind::broadcast;
      const std::int64_t count = static_cast<std::int64_t>(input.size()) / (whole ? 1 : ranks);
      WEFT_TRY(
          seconds,
          time_of(group, {.kind = kind, .input = input.data(), .output = output.data(), .count = count}));
      const double least = bound(kind, static_cast<double>(bytes), group.size(), network);
      const double nominal = bound(kind, static_cast<double>(bytes), group.size(), claimed);
      if (group.rank() == 0) {
        fmt::print("{:<15} {:>8}   {:>8}   bound {:>8}   {:.2f}x   ({:.2f}x of {} on paper)\n",
                   collective::name(kind), print_bytes(static_cast<double>(bytes)), print_seconds(seconds),
                   print_seconds(least), seconds / least, seconds / nominal, print_seconds(nominal));
        std::fflush(stdout);
      }
    }
  }
  return {};
}

Result<std::unique_ptr<Communicator>> open(TransportKind kind) {
  Options options;
  options.transport = kind;
  options.statistics = "none";
  if (kind != TransportKind::mpi) return connect(options);
  WEFT_TRY(library, transport::mpi::Library::load());
  WEFT_TRY(job, transport::mpi::join(library, std::chrono::seconds(30)));
  return Communicator::create(std::move(job), options);
}

Status run(int argc, char** argv) {
  const auto kind = find_transport(argc > 1 ? argv[1] : "");
  if (!kind) return user_error("usage: all_reduce_check TRANSPORT [HOSTS DELAY_US RATE_MBIT]");
  WEFT_TRY(group, open(*kind));
  WEFT_TRY_STATUS(check_everything(*group));
  if (group->rank() == 0)
    fmt::print("{} ranks over {}: every result is right\n", group->size(), group->transport());
  std::fflush(stdout);
  if (argc < 5) return {};
  return measure(*group, {std::atoi(argv[2]), std::atof(argv[3]) * 1e-6, 8e-6 / std::atof(argv[4])});
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "all_reduce_check: {}\n", status.error().message);
  if (!status.error().hint.empty()) fmt::print(stderr, "  hint: {}\n", status.error().hint);
  return 1;
}
