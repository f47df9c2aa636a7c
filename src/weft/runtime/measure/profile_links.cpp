#include "weft/runtime/measure/profile_links.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Wire;

constexpr transport::Capacity kCapacity{.slots = 4, .slot_bytes = 128 << 10};
constexpr std::size_t kSmall = 8;
constexpr int kBatches = 9, kStreams = 4;                 // the best one counts
constexpr std::uint64_t kProfileTopicGroup = 0x70726f66;  // "prof"

enum class MoreFlag : std::uint8_t { more, last };

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::max(std::chrono::duration<double>(end - start).count(), 1e-9);
}

std::string print(std::span<const cost::LinkTime> links) {
  nlohmann::json rows = nlohmann::json::array();
  for (const cost::LinkTime& link : links)
    rows.push_back({link.from, link.to, link.together, link.latency_seconds, link.bytes_per_second});
  return rows.dump();
}

// Adds the measurements of another rank.
Status read(std::string_view text, const transport::Endpoint& endpoint, std::vector<cost::LinkTime>& links) {
  try {
    for (const nlohmann::json& row : nlohmann::json::parse(text))
      links.push_back({std::string(endpoint.transport()), endpoint.ranks(), row.at(0), row.at(1), row.at(2),
                       row.at(3), row.at(4), cost::seconds_since_1970()});
  } catch (const nlohmann::json::exception&) {
    return environment_error("cannot read the measurements of a rank",
                             "run the same weft version on all ranks");
  }
  return {};
}

// Copies latencies to links without one: a round trip covers both directions, and concurrent use of
// the same link.
void share_latencies(std::vector<cost::LinkTime>& links) {
  for (cost::LinkTime& link : links) {
    if (link.latency_seconds > 0) continue;
    for (const cost::LinkTime& known : links) {
      const bool same = std::minmax(known.from, known.to) == std::minmax(link.from, link.to);
      if (same && known.latency_seconds > 0) link.latency_seconds = known.latency_seconds;
    }
  }
}

// One rank's share of all measurements.
class Prober {
 public:
  Prober(transport::Job& job, std::span<const std::int32_t> members, transport::Endpoint& endpoint,
         const LinkEffort& effort)
      : job_(job), members_(members), endpoint_(endpoint), effort_(effort) {
    buffer_.resize(static_cast<std::size_t>(kCapacity.slot_bytes));
    target_.resize(buffer_.size());
  }

  Result<std::vector<cost::LinkTime>> measure();

 private:
  std::int32_t rank() const { return endpoint_.rank(); }
  std::int32_t ranks() const { return endpoint_.ranks(); }
  std::size_t place(Wire wire) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(wires_, wire) - wires_.begin());
  }
  transport::Outgoing& to(std::int32_t peer) { return *ends_.outgoing[place({rank(), peer, 0})]; }
  transport::Incoming& from(std::int32_t peer) { return *ends_.incoming[place({peer, rank(), 0})]; }

  // Repeats `attempt` until it succeeds, sleeping in between.
  template <class Attempt>
  Status until(Attempt&& attempt);
  Status send(std::int32_t peer, std::size_t bytes, MoreFlag flag);
  Result<MoreFlag> receive(std::int32_t peer, std::size_t bytes);
  Status open();
  Result<std::vector<transport::Parcel>> everyone(std::string mine);
  Status measure_pair(std::int32_t a, std::int32_t b);
  Result<double> ping(std::int32_t peer);
  Status pong(std::int32_t peer);
  Result<double> stream_to(std::int32_t peer);
  Status drain(std::int32_t peer);
  Result<double> stream_around_ring();

  transport::Job& job_;
  std::span<const std::int32_t> members_;
  transport::Endpoint& endpoint_;
  LinkEffort effort_;
  std::vector<Wire> wires_;
  transport::Ends ends_;
  std::vector<std::byte> buffer_, target_;
  std::vector<cost::LinkTime> mine_;
  std::uint64_t exchanges_ = 0;
};

template <class Attempt>
Status Prober::until(Attempt&& attempt) {
  const auto deadline = Clock::now() + job_.timeout();
  for (;;) {
    const std::uint32_t seen = endpoint_.signal();
    if (attempt()) return {};
    if (endpoint_.progress()) continue;
    if (const auto fault = endpoint_.fault())
      return environment_error(fmt::format("the measurement failed: {}", fault->text));
    for (const transport::Death& death : job_.deaths())
      if (std::ranges::count(members_, death.rank) > 0)
        return environment_error(fmt::format("rank {} failed: {}", death.rank, death.how));
    if (Clock::now() > deadline)
      return environment_error("the measurement made no progress before the job's timeout");
    endpoint_.wait(seen, std::chrono::milliseconds(50));
  }
}

Status Prober::send(std::int32_t peer, std::size_t bytes, MoreFlag flag) {
  buffer_[0] = static_cast<std::byte>(flag);
  return until([&] { return to(peer).send_from(std::span(buffer_).first(bytes)); });
}

Result<MoreFlag> Prober::receive(std::int32_t peer, std::size_t bytes) {
  WEFT_TRY_STATUS(until([&] { return from(peer).receive_into(std::span(target_).first(bytes)); }));
  return target_[0] == static_cast<std::byte>(MoreFlag::last) ? MoreFlag::last : MoreFlag::more;
}

Status Prober::open() {
  for (const auto& [a, b] : pairs_of(ranks())) {
    wires_.push_back({a, b, 0});
    wires_.push_back({b, a, 0});
  }
  std::ranges::sort(wires_);
  WEFT_TRY(ends, endpoint_.open(wires_, kCapacity));
  ends_ = std::move(ends);
  return {};
}

// Half of a round trip in seconds.
Result<double> Prober::ping(std::int32_t peer) {
  double best = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const bool last_batch = batch + 1 == kBatches;
    std::int64_t trips = 0;
    const auto start = Clock::now();
    for (bool last = false; !last; ++trips) {
      last = trips > 0 && Clock::now() - start > effort_.latency / kBatches;
      WEFT_TRY_STATUS(send(peer, kSmall, last && last_batch ? MoreFlag::last : MoreFlag::more));
      WEFT_TRY(answer, receive(peer, kSmall));
      (void)answer;
    }
    const double seconds = seconds_between(start, Clock::now()) / 2 / static_cast<double>(trips);
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

Status Prober::pong(std::int32_t peer) {
  for (;;) {
    WEFT_TRY(flag, receive(peer, kSmall));
    WEFT_TRY_STATUS(send(peer, kSmall, MoreFlag::more));
    if (flag == MoreFlag::last) return {};
  }
}

// Streaming rate to `peer` in bytes per second.
Result<double> Prober::stream_to(std::int32_t peer) {
  double best = 0;
  for (int stream = 0; stream < kStreams; ++stream) {
    std::int64_t messages = 0;
    const auto start = Clock::now();
    for (bool last = false; !last; ++messages) {
      last = messages >= kCapacity.slots && Clock::now() - start > effort_.stream / kStreams;
      WEFT_TRY_STATUS(send(peer, buffer_.size(), last ? MoreFlag::last : MoreFlag::more));
    }
    WEFT_TRY(acknowledged, receive(peer, kSmall));
    (void)acknowledged;
    const double rate =
        static_cast<double>(messages * kCapacity.slot_bytes) / seconds_between(start, Clock::now());
    best = std::max(best, rate);
  }
  return best;
}

Status Prober::drain(std::int32_t peer) {
  for (int stream = 0; stream < kStreams; ++stream) {
    for (;;) {
      WEFT_TRY(flag, receive(peer, target_.size()));
      if (flag == MoreFlag::last) break;
    }
    WEFT_TRY_STATUS(send(peer, kSmall, MoreFlag::more));
  }
  return {};
}

// Sends to the next rank while receiving from the previous one, until both are done.
Result<double> Prober::stream_around_ring() {
  const std::int32_t next = (rank() + 1) % ranks(), before = (rank() + ranks() - 1) % ranks();
  bool sent_last = false, received_last = false;
  std::int64_t received = 0, sent = 0;
  const auto start = Clock::now();
  buffer_[0] = static_cast<std::byte>(MoreFlag::more);
  bool pending = false;  // a partially sent message must not change
  while (!sent_last || !received_last) {
    WEFT_TRY_STATUS(until([&] {
      bool moved = false;
      if (!sent_last) {
        if (!pending && sent >= kCapacity.slots && Clock::now() - start > effort_.stream / kStreams)
          buffer_[0] = static_cast<std::byte>(MoreFlag::last);
        pending = !to(next).send_from(buffer_);
        if (!pending) {
          moved = true;
          ++sent;
          sent_last = buffer_[0] == static_cast<std::byte>(MoreFlag::last);
        }
      }
      if (!received_last && from(before).receive_into(target_)) {
        moved = true;
        ++received;
        received_last = target_[0] == static_cast<std::byte>(MoreFlag::last);
      }
      return moved;
    }));
  }
  return static_cast<double>(received * kCapacity.slot_bytes) / seconds_between(start, Clock::now());
}

// Exchanges `mine` among all ranks, sleeping while it waits.
Result<std::vector<transport::Parcel>> Prober::everyone(std::string mine) {
  const std::uint64_t group = kProfileTopicGroup + static_cast<std::uint64_t>(members_.front());
  return job_.exchange(members_, {group, exchanges_++}, {std::move(mine), -1});
}

Status Prober::measure_pair(std::int32_t a, std::int32_t b) {
  if (rank() == a) {
    WEFT_TRY(latency, ping(b));
    WEFT_TRY(there, stream_to(b));
    WEFT_TRY_STATUS(drain(b));
    mine_.push_back({std::string(endpoint_.transport()), ranks(), a, b, false, latency, there, 0});
  } else if (rank() == b) {
    WEFT_TRY_STATUS(pong(a));
    WEFT_TRY_STATUS(drain(a));
    WEFT_TRY(back, stream_to(a));
    mine_.push_back({std::string(endpoint_.transport()), ranks(), b, a, false, 0, back, 0});
  }
  return {};
}

Result<std::vector<cost::LinkTime>> Prober::measure() {
  WEFT_TRY_STATUS(open());
  for (const auto& [a, b] : pairs_of(ranks())) {
    WEFT_TRY_STATUS(measure_pair(a, b));
    WEFT_TRY(others, everyone(""));
  }
  double best = 0;
  for (int round = 0; round < kStreams; ++round) {
    WEFT_TRY(rate, stream_around_ring());
    best = std::max(best, rate);
    WEFT_TRY(others, everyone(""));
  }
  const std::int32_t before = (rank() + ranks() - 1) % ranks();
  mine_.push_back({std::string(endpoint_.transport()), ranks(), before, rank(), true, 0, best, 0});
  WEFT_TRY(parcels, everyone(print(mine_)));
  std::vector<cost::LinkTime> links;
  for (const transport::Parcel& parcel : parcels) WEFT_TRY_STATUS(read(parcel.bytes, endpoint_, links));
  share_latencies(links);
  return links;
}

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> pairs_of(std::int32_t ranks) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t a = 0; a < ranks; ++a)
    for (std::int32_t b = a + 1; b < ranks; ++b) {
      const bool neighbours = b == a + 1 || (a == 0 && b == ranks - 1);
      if (ranks <= kMostRanksInPairs || neighbours || b - a == ranks / 2) pairs.emplace_back(a, b);
    }
  return pairs;
}

Result<std::vector<cost::LinkTime>> measure_links(transport::Job& job, std::span<const std::int32_t> members,
                                                  transport::Endpoint& endpoint, const LinkEffort& effort) {
  if (endpoint.ranks() < 2) return std::vector<cost::LinkTime>();
  return Prober(job, members, endpoint, effort).measure();
}

}  // namespace weft::measure
