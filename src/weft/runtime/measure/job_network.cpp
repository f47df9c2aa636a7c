#include "weft/runtime/measure/job_network.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "weft/communication/comm/communicator.h"

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;
using comm::Communicator;
using comm::ElementType;

constexpr std::int32_t kMostPinged = 8;                                // hosts to ping
constexpr double kPingSeconds = 0.02;                                  // per host
constexpr double kRateSeconds = 0.4;                                   // for the rate
constexpr std::int64_t kFirstBytes = 64 << 10, kMostBytes = 16 << 20;  // sent per rank

double seconds_since(Clock::time_point start) {
  return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
}

// Half of the fastest round trip to `peer`; the last message tells it to stop.
Result<double> ping(Communicator& group, std::int32_t peer) {
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (std::int64_t last = 0; last == 0;) {
    last = seconds_since(begin) > kPingSeconds ? 1 : 0;
    const auto start = Clock::now();
    WEFT_TRY_STATUS(group.send(&last, 1, ElementType::i64, peer));
    std::int64_t answer = 0;
    WEFT_TRY_STATUS(group.receive(&answer, 1, ElementType::i64, peer));
    best = std::min(best, seconds_since(start) / 2);
  }
  return best;
}

Status answer_pings(Communicator& group) {
  for (std::int64_t last = 0; last == 0;) {
    WEFT_TRY_STATUS(group.receive(&last, 1, ElementType::i64, 0));
    WEFT_TRY_STATUS(group.send(&last, 1, ElementType::i64, 0));
  }
  return {};
}

Result<double> largest(Communicator& world, double mine) {
  WEFT_TRY_STATUS(world.all_reduce(&mine, &mine, 1, ElementType::f64, comm::ReduceOp::max));
  return mine;
}

// `group`: the ranks with the same position on every host.
Result<double> measure_latency(Communicator& world, Communicator& group, bool first_places,
                               std::int32_t hosts) {
  double latency = 0;
  for (std::int32_t host = 1; host < std::min(hosts, kMostPinged + 1); ++host) {
    if (first_places && group.rank() == 0) {
      WEFT_TRY(found, ping(group, host));
      latency = std::max(latency, found);
    } else if (first_places && group.rank() == host) {
      WEFT_TRY_STATUS(answer_pings(group));
    }
    WEFT_TRY_STATUS(world.barrier());
  }
  return largest(world, latency);
}

Result<double> measure_rate(Communicator& world, Communicator& group) {
  const std::int64_t others = group.size() - 1;
  std::vector<std::byte> out(
      static_cast<std::size_t>(group.size() * kMostBytes / std::max<std::int64_t>(others, 1)));
  std::vector<std::byte> in(out.size());
  const auto call = [&](std::int64_t bytes) -> Result<double> {
    WEFT_TRY_STATUS(world.barrier());
    const auto start = Clock::now();
    if (others > 0) WEFT_TRY_STATUS(group.all_to_all(out.data(), in.data(), bytes, ElementType::u8));
    return largest(world, seconds_since(start));
  };
  WEFT_TRY(warm_up, call(1));
  double best = 0, spent = warm_up;
  // The slowest rank, usually of the largest group, determines the rate for all.
  for (std::int64_t bytes = kFirstBytes; spent < kRateSeconds; bytes = std::min(2 * bytes, kMostBytes)) {
    const std::int64_t each = std::max<std::int64_t>(bytes / std::max<std::int64_t>(others, 1), 1);
    WEFT_TRY(seconds, call(each));
    best = std::max(best, static_cast<double>(bytes) / seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace

Result<Network> measure_network(const std::shared_ptr<transport::Job>& job, const transport::Hosts& hosts) {
  comm::Options options;
  options.background = false;
  options.statistics = "none";
  WEFT_TRY(world, Communicator::create(job, options));
  const auto me = static_cast<std::size_t>(job->rank());
  WEFT_TRY(group, world->split(hosts.places[me], hosts.of[me]));
  Network network;
  WEFT_TRY(latency, measure_latency(*world, *group, hosts.places[me] == 0, hosts.count));
  network.latency_seconds = latency;
  WEFT_TRY(rate, measure_rate(*world, *group));
  network.bytes_per_second = rate;
  return network;
}

}  // namespace weft::measure
