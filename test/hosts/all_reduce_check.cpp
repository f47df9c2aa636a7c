// all_reduce_check TRANSPORT [HOSTS DELAY_US RATE_MBIT] -- collectives among ranks that a launcher
// started.
//
//   RANK=0 WORLD_SIZE=8 MASTER_ADDR=10.77.0.1 MASTER_PORT=4711 all_reduce_check tcp
//   mpirun ... all_reduce_check mpi
//
// Runs every collective at several sizes and checks each element. Given the network's parameters,
// it also times the collectives. Beside each time it prints the lower bound for any algorithm and
// the time of bare sockets for the same messages (bare_sockets.h). If MASTER_ADDR is set, the
// bound uses the delay and rate measured with a bare socket. Exits with 0 if all results are
// correct.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bare_sockets.h"
#include "weft/base/units.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/mpi/job.h"

namespace {

using namespace weft;
using namespace weft::comm;

using Values = std::vector<float>;

// Element i of rank r's input: small whole numbers, so that sums are exact in any order.
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
      return environment_error(fmt::format("{}: element {} is {}, expected {}", what, i, found[i], value));
  }
  return {};
}

// Each function runs one collective of `count` elements per block and checks the result.
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
  hosts::Line line;  // of one host, per direction
};

// The least time for a message of `bytes` (the larger buffer of a rank) with the ranks spread
// evenly over the hosts. Transfers within a host are free.
double bound(Kind kind, double bytes, std::int32_t ranks, const Network& network) {
  const double hosts = network.hosts, others = (hosts - 1) / hosts;
  const double delay = network.line.delay, line = bytes * network.line.seconds_per_byte;
  switch (kind) {
    case Kind::all_reduce:  // one step, all to all; or reduce-scatter and all-gather
      return std::min(delay + (hosts - 1) * line, 2 * delay + 2 * others * line);
    case Kind::all_to_all: return delay + ranks / hosts * others * line;
    case Kind::broadcast:  // directly from the root, or forwarded by another host
      return std::min(delay + (hosts - 1) * line, (hosts > 2 ? 2 : 1) * delay + line);
    default: return delay + others * line;
  }
}

// The bytes per pair of hosts if the fastest algorithm sends everything in one wave.
std::optional<double> wave_bytes(Kind kind, double bytes, std::int32_t ranks, const Network& network) {
  const double hosts = network.hosts;
  if (kind == Kind::all_to_all) return ranks / hosts * bytes / hosts;
  if (kind != Kind::all_reduce && kind != Kind::broadcast) return bytes / hosts;
  const double at_once = network.line.delay + (hosts - 1) * bytes * network.line.seconds_per_byte;
  return at_once <= bound(kind, bytes, ranks, network) ? std::optional(bytes) : std::nullopt;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median time from a common start to the end of the last rank. The hosts are namespaces of one
// machine and share a clock. After a barrier, some ranks would start one delay later than others.
Result<double> time_of(Communicator& group, const std::function<Status()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRepetitions = 7;
  constexpr std::chrono::milliseconds kAhead{10};
  std::vector<double> times;
  for (int i = -2; i < kRepetitions; ++i) {
    std::int64_t at = (Clock::now() + kAhead).time_since_epoch().count();
    WEFT_TRY_STATUS(group.broadcast(&at, &at, 1, ElementType::i64, 0));
    const Clock::time_point start{Clock::duration(at)};
    std::this_thread::sleep_until(start);
    WEFT_TRY_STATUS(call());
    double slowest = seconds_since(start);
    WEFT_TRY_STATUS(group.all_reduce(&slowest, &slowest, 1, ElementType::f64, ReduceOp::max));
    if (i >= 0) times.push_back(slowest);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

std::string times(double seconds, double least) {
  return fmt::format("{:>8} {:.2f}x", print_seconds(seconds), seconds / least);
}

Status measure(Communicator& group, const Network& claimed) {
  const char* const address = std::getenv("MASTER_ADDR");
  Network network = claimed;
  std::optional<hosts::Leaders> leaders;
  if (address != nullptr && claimed.hosts > 1) {
    WEFT_TRY(connected, hosts::Leaders::connect(group, claimed.hosts, address));
    leaders.emplace(std::move(connected));
    WEFT_TRY(line, leaders->try_line(group));
    network.line = line;
    if (group.rank() == 0)
      fmt::print("a bare socket: {} one way, {:.0f} Mbit/s\n", print_seconds(line.delay),
                 8e-6 / line.seconds_per_byte);
  }
  const auto ranks = static_cast<std::int64_t>(group.size());
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast, Kind::all_to_all}) {
    for (const std::int64_t bytes : {1 << 10, 64 << 10, 1 << 20, 16 << 20}) {
      Values input(static_cast<std::size_t>(bytes) / sizeof(float)), output = input;
      const bool whole = kind == Kind::all_reduce || kind == Kind::broadcast;
      const std::int64_t count = static_cast<std::int64_t>(input.size()) / (whole ? 1 : ranks);
      const Call call{.kind = kind, .input = input.data(), .output = output.data(), .count = count};
      WEFT_TRY(seconds, time_of(group, [&] { return group.run(call); }));
      const double message = static_cast<double>(bytes);
      const double least = bound(kind, message, group.size(), network);
      std::string row = fmt::format("{:<15} {:>8}   {}   bound {:>8}", collective::name(kind),
                                    print_bytes(message), times(seconds, least), print_seconds(least));
      if (const auto wave = wave_bytes(kind, message, group.size(), network); leaders && wave) {
        WEFT_TRY(bare, time_of(group, [&] {
                   return leaders->wave(static_cast<std::size_t>(*wave), kind == Kind::broadcast);
                 }));
        row += fmt::format("   bare sockets {}", times(bare, least));
      }
      const double nominal = bound(kind, message, group.size(), claimed);
      row += fmt::format("   ({:.2f}x of the nominal {})", seconds / nominal, print_seconds(nominal));
      if (group.rank() == 0) fmt::print("{}\n", row);
      std::fflush(stdout);
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
  return measure(*group, {std::atoi(argv[2]), {std::atof(argv[3]) * 1e-6, 8e-6 / std::atof(argv[4])}});
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "all_reduce_check: {}\n", status.error().message);
  if (!status.error().hint.empty()) fmt::print(stderr, "  hint: {}\n", status.error().hint);
  return 1;
}
