#include "weft/communication/transport/mixed/endpoint.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/communication/transport/outcome.h"
#include "weft/communication/transport/shm/endpoint.h"
#include "weft/communication/transport/tcp/endpoint.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport::mixed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMixedTopic = kEndpointTopics + (std::uint64_t{1} << 62);  // not those of shm

// The wires by transport, with their positions in the list.
struct Sorted {
  std::vector<Wire> near, far;  // near: by places on this host, without those of other hosts
  std::vector<std::size_t> near_index, far_index;
};

class MixedEndpoint final : public Endpoint {
 public:
  struct Parts {
    std::shared_ptr<Job> job;
    std::vector<std::int32_t> members;
    Hosts hosts;
    std::int32_t rank = 0;
    std::uint64_t group = 0, number = 0;  // of the next exchange
    shm::Neighbourhood near;              // empty if no other rank of the group is on this host
    std::unique_ptr<Endpoint> far;
    Patience patience;
  };
  explicit MixedEndpoint(Parts parts) : parts_(std::move(parts)) {}

  std::string_view transport() const override { return "mixed"; }
  std::int32_t rank() const override { return parts_.rank; }
  std::int32_t ranks() const override { return static_cast<std::int32_t>(parts_.members.size()); }

  Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) override;

  bool progress() override { return parts_.far->progress(); }
  std::uint32_t signal() override { return near_signal() + parts_.far->signal(); }
  void wait(std::uint32_t seen, nanoseconds limit) override;
  void wake() override { parts_.far->wake(); }
  std::optional<WireFault> fault() override {
    if (parts_.near.endpoint)
      if (auto fault = parts_.near.endpoint->fault()) return fault;
    return parts_.far->fault();
  }

 private:
  std::uint32_t near_signal() const { return parts_.near.neighbours ? parts_.near.neighbours->signal() : 0; }
  std::int32_t host_of(std::int32_t rank) const { return parts_.hosts.of[static_cast<std::size_t>(rank)]; }
  std::int32_t place_of(std::int32_t rank) const {
    return parts_.hosts.places[static_cast<std::size_t>(rank)];
  }
  bool is_near(const Wire& wire) const;
  Sorted sort(std::span<const Wire> wires) const;
  // Spins and yields; returns whether something happened meanwhile.
  bool stay_awake(std::uint32_t near_seen, std::uint32_t far_seen, Clock::time_point until);

  Parts parts_;
};

// A rank that is alone on its host uses a socket even to itself.
bool MixedEndpoint::is_near(const Wire& wire) const {
  if (std::min(wire.from, wire.to) < 0 || std::max(wire.from, wire.to) >= ranks()) return false;
  const std::int32_t from = host_of(wire.from), to = host_of(wire.to);
  return from == to && std::ranges::count(parts_.hosts.of, from) > 1;
}

Sorted MixedEndpoint::sort(std::span<const Wire> wires) const {
  Sorted sorted;
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Wire& wire = wires[i];
    if (!is_near(wire)) {
      sorted.far.push_back(wire);
      sorted.far_index.push_back(i);
    } else if (host_of(wire.from) == host_of(rank())) {
      sorted.near.push_back({place_of(wire.from), place_of(wire.to), wire.channel});
      sorted.near_index.push_back(i);
    }
  }
  return sorted;
}

Result<Ends> MixedEndpoint::open(std::span<const Wire> wires, const Capacity& capacity) {
  const Sorted sorted = sort(wires);
  Result<Ends> near = parts_.near.endpoint ? parts_.near.endpoint->open(sorted.near, capacity) : Ends{};
  // If one machine is out of memory, the others must not wait for its sockets.
  const Topic topic{parts_.group, kMixedTopic + parts_.number++};
  WEFT_TRY_STATUS(share_outcome(*parts_.job, parts_.members, topic, near.ok() ? Status() : near.error()));
  WEFT_TRY(far, parts_.far->open(sorted.far, capacity));
  Ends ends;
  ends.outgoing.resize(wires.size());
  ends.incoming.resize(wires.size());
  for (const auto& [index, opened] : {std::pair(&sorted.near_index, &*near), {&sorted.far_index, &far}})
    for (std::size_t i = 0; i < index->size() && i < opened->outgoing.size(); ++i) {
      ends.outgoing[(*index)[i]] = std::move(opened->outgoing[i]);
      ends.incoming[(*index)[i]] = std::move(opened->incoming[i]);
    }
  return ends;
}

bool MixedEndpoint::stay_awake(std::uint32_t near_seen, std::uint32_t far_seen, Clock::time_point until) {
  const auto look_far = [&] {
    parts_.far->wait(far_seen, nanoseconds(0));
    return parts_.far->signal() != far_seen;
  };
  for (std::int32_t spin = 0; spin < parts_.patience.spins; ++spin) {
    spin_pause();
    if (near_signal() != near_seen) return true;
  }
  for (const auto end = std::min(until, Clock::now() + parts_.patience.yields);
       yields_return() && Clock::now() < end;) {
    yield_core();
    if (near_signal() != near_seen || look_far()) return true;
  }
  return false;
}

void MixedEndpoint::wait(std::uint32_t seen, nanoseconds limit) {
  if (!parts_.near.neighbours) return parts_.far->wait(seen, limit);
  const std::uint32_t near_seen = near_signal(), far_seen = parts_.far->signal();
  if (near_seen + far_seen != seen) return;
  const auto begin = Clock::now();
  const auto until = begin + std::clamp(limit, nanoseconds(0), nanoseconds(std::chrono::hours(24)));
  if (stay_awake(near_seen, far_seen, until)) return;
  for (auto now = Clock::now(); now < until && signal() == seen; now = Clock::now())
    parts_.near.neighbours->sleep_elsewhere(near_seen, [&] { parts_.far->wait(far_seen, until - now); });
}

// Opens shared memory with the ranks of this host; its bell is the sockets' bell too.
Result<shm::Neighbourhood> meet_neighbours(const MixedEndpoint::Parts& parts, const tcp::Socket& bell) {
  std::vector<std::int32_t> here, names;
  for (std::size_t at = 0; at < parts.members.size(); ++at) {
    if (parts.hosts.of[at] != parts.hosts.of[static_cast<std::size_t>(parts.rank)]) continue;
    here.push_back(parts.members[at]);
    names.push_back(static_cast<std::int32_t>(at));
  }
  if (here.size() == 1) return shm::Neighbourhood{};
  return shm::make_neighbourhood(parts.job, std::move(here), parts.group,
                                 {.names = std::move(names), .bell = bell.descriptor()});
}

Status make_parts(MixedEndpoint::Parts& parts) {
  const tcp::Socket bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const Status rings = bell ? Status() : tcp::socket_error("cannot make an event descriptor", errno);
  Result<shm::Neighbourhood> near = meet_neighbours(parts, bell);  // even without: the other ranks wait
  WEFT_TRY_STATUS(rings);
  if (!near.ok()) return near.error();
  parts.near = std::move(near).value();

  // If there are ranks on this host, the sockets neither spin nor yield: MixedEndpoint does.
  tcp::TcpOptions options;
  if (parts.near.endpoint) options = {.patience = Patience{0, nanoseconds(0)}, .bell = bell.descriptor()};
  WEFT_TRY(far, tcp::make_endpoint(parts.job, parts.members, parts.group, options));
  parts.far = std::move(far);
  return {};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group) {
  WEFT_CHECK(std::ranges::is_sorted(members) && std::ranges::binary_search(members, job->rank()));
  MixedEndpoint::Parts parts;
  parts.rank = static_cast<std::int32_t>(std::ranges::lower_bound(members, job->rank()) - members.begin());
  parts.hosts = find_hosts(*job, members);
  parts.patience = patience_for(ranks_on_this_machine(*job, members));
  parts.group = group;
  parts.job = std::move(job);
  parts.members = std::move(members);
  const Status made = make_parts(parts);
  WEFT_TRY_STATUS(share_outcome(*parts.job, parts.members, {group, kMixedTopic + parts.number++}, made));
  return {std::make_unique<MixedEndpoint>(std::move(parts))};
}

}  // namespace weft::transport::mixed
