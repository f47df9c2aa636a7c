#include "weft/communication/transport/shm/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "weft/base/hash.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/communication/transport/ring.h"
#include "weft/communication/transport/segment.h"
#include "weft/communication/transport/shm/connection.h"
#include "weft/communication/transport/shm/neighbours.h"

namespace weft::transport::shm {
namespace {

// A segment that rank 0 of the group created and all have mapped, and each rank's contribution.
struct Shared {
  Segment segment;
  std::vector<std::string> said;
};

// Closes the descriptors that were not taken.
class Parcels {
 public:
  explicit Parcels(std::vector<Parcel> parcels) : parcels_(std::move(parcels)) {}
  ~Parcels() {
    for (const Parcel& parcel : parcels_)
      if (parcel.descriptor >= 0) close(parcel.descriptor);
  }
  Parcels(const Parcels&) = delete;
  Parcels& operator=(const Parcels&) = delete;

  std::string& bytes(std::size_t rank) { return parcels_[rank].bytes; }
  int take(std::size_t rank) { return std::exchange(parcels_[rank].descriptor, -1); }
  std::size_t size() const { return parcels_.size(); }

 private:
  std::vector<Parcel> parcels_;
};

// Prefix of a rank's contribution to an exchange: "ok:...", otherwise it is an error message.
constexpr std::string_view kFine = "ok:";

struct Meeting {
  std::shared_ptr<Job> job;
  std::vector<std::int32_t> members;
  std::int32_t rank = 0;
  std::uint64_t group = 0;
  std::uint64_t number = kEndpointTopics;  // of the next exchange
};

// All ranks pass the size and their contribution; if one has an error, all fail.
Result<Shared> share(Meeting& meeting, Result<std::size_t> bytes, Backing backing, std::string_view says) {
  const Topic topic{meeting.group, meeting.number++};
  Shared shared;
  Parcel mine;
  std::optional<Error> problem;
  if (!bytes.ok()) {
    problem = bytes.error();
  } else if (meeting.rank == 0) {
    Result<Segment> made = Segment::create(*bytes, backing);
    if (made.ok())
      shared.segment = std::move(made).value();
    else
      problem = made.error();
  }
  mine.bytes = problem ? problem->message : fmt::format("{}{}", kFine, says);
  mine.descriptor = shared.segment.descriptor();
  WEFT_TRY(answers, meeting.job->exchange(meeting.members, topic, mine));
  Parcels parcels(std::move(answers));
  WEFT_CHECK(parcels.size() == meeting.members.size());
  if (problem) return *problem;
  for (std::size_t other = 0; other < parcels.size(); ++other) {
    std::string& text = parcels.bytes(other);
    if (!text.starts_with(kFine))
      return environment_error(fmt::format("rank {} cannot share memory: {}", meeting.members[other], text));
    shared.said.push_back(text.substr(kFine.size()));
  }
  if (meeting.rank != 0) {
    WEFT_TRY(segment, Segment::map(parcels.take(0), *bytes));
    shared.segment = std::move(segment);
  }
  return shared;
}

class ShmEndpoint final : public Endpoint {
 public:
  ShmEndpoint(Meeting meeting, std::shared_ptr<Neighbours> neighbours, std::string_view name)
      : meeting_(std::move(meeting)), neighbours_(std::move(neighbours)), name_(name) {}

  std::string_view transport() const override { return name_; }
  std::int32_t rank() const override { return neighbours_->rank(); }
  std::int32_t ranks() const override { return neighbours_->ranks(); }

  Result<Ends> open(std::span<const Wire> wires, const Capacity& capacity) override;

  bool progress() override { return false; }
  std::uint32_t signal() override { return neighbours_->signal(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience) override {
    neighbours_->wait(seen, patience);
  }
  void wake() override { neighbours_->tell(rank()); }
  std::optional<WireFault> fault() override { return neighbours_->fault(); }

 private:
  // Total bytes of all rings.
  Result<std::size_t> measure(std::span<const Wire> sorted, const Capacity& capacity) const;

  Meeting meeting_;
  std::shared_ptr<Neighbours> neighbours_;
  std::string name_;
};

Result<std::size_t> ShmEndpoint::measure(std::span<const Wire> sorted, const Capacity& capacity) const {
  for (const Wire& wire : sorted)
    if (wire.from < 0 || wire.from >= ranks() || wire.to < 0 || wire.to >= ranks())
      return user_error(fmt::format("a connection is outside the group: rank {} to rank {} of {} ranks",
                                    wire.from, wire.to, ranks()));
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return user_error(fmt::format("a connection is opened twice: rank {} to rank {}, channel {}", twice->from,
                                  twice->to, twice->channel));
  WEFT_TRY(ring, ring_bytes(capacity));
  std::size_t all = 0;
  const std::int64_t available = available_memory();
  if (__builtin_mul_overflow(ring, sorted.size(), &all) ||
      (available > 0 && all > static_cast<std::size_t>(available)))
    return environment_error(
        fmt::format("not enough shared memory: {} connections of {}, {} free", sorted.size(),
                    print_bytes(static_cast<double>(ring)), print_bytes(static_cast<double>(available))),
        "use fewer channels or smaller slots");
  return all;
}

Result<Ends> ShmEndpoint::open(std::span<const Wire> wires, const Capacity& capacity) {
  std::vector<Wire> sorted(wires.begin(), wires.end());
  std::ranges::sort(sorted);
  Hasher hasher;
  hasher.number(static_cast<std::uint64_t>(capacity.slots))
      .number(static_cast<std::uint64_t>(capacity.slot_bytes));
  for (const Wire& wire : sorted)
    for (const std::int32_t part : {wire.from, wire.to, wire.channel})
      hasher.number(static_cast<std::uint64_t>(part));
  const std::string list = hasher.digest().hex();

  Result<std::size_t> bytes = measure(sorted, capacity);
  WEFT_TRY(shared, share(meeting_, bytes, Backing::sparse, list));
  for (std::size_t other = 0; other < shared.said.size(); ++other)
    if (shared.said[other] != list)
      return user_error(
          fmt::format("ranks open different connections: rank {} and rank {}", neighbours_->name_of(rank()),
                      neighbours_->name_of(static_cast<std::int32_t>(other))),
          "every rank of a group must make the same calls in the same order");

  const auto segment = std::make_shared<const Segment>(std::move(shared.segment));
  const std::size_t ring = sorted.empty() ? 0 : *bytes / sorted.size();
  Ends ends;
  ends.outgoing.resize(wires.size());
  ends.incoming.resize(wires.size());
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Wire& wire = wires[i];
    if (wire.from != rank() && wire.to != rank()) continue;
    const auto place = static_cast<std::size_t>(std::ranges::lower_bound(sorted, wire) - sorted.begin());
    const RingPlace at{neighbours_, segment, segment->data() + place * ring};
    if (wire.from == rank()) ends.outgoing[i] = make_outgoing(at, wire, capacity);
    if (wire.to != rank()) continue;
    ends.incoming[i] = make_incoming(at, wire, capacity);
    // Near the receiver: the sender writes a slot once, the receiver may read it several times.
    if (has_several_numa_nodes()) WEFT_TRY_STATUS(segment->populate(place * ring, ring));
  }
  return ends;
}

// Exchanges the event descriptors of all ranks.
Result<std::vector<tcp::Socket>> share_bells(Meeting& meeting, int mine) {
  WEFT_TRY(answers, meeting.job->exchange(meeting.members, Topic{meeting.group, meeting.number++},
                                          Parcel{.bytes = {}, .descriptor = mine}));
  Parcels parcels(std::move(answers));
  std::vector<tcp::Socket> bells;
  for (std::size_t other = 0; other < parcels.size(); ++other) {
    const bool own = static_cast<std::int32_t>(other) == meeting.rank;
    bells.emplace_back(own ? ::fcntl(mine, F_DUPFD_CLOEXEC, 0) : parcels.take(other));
    if (!bells.back())
      return environment_error(fmt::format("rank {} sent no event descriptor", meeting.members[other]));
  }
  return bells;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const Options& options) {
  WEFT_TRY(made, make_neighbourhood(std::move(job), std::move(members), group, options));
  return std::move(made.endpoint);
}

Result<Neighbourhood> make_neighbourhood(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                         std::uint64_t group, const Options& options) {
  WEFT_CHECK(std::ranges::is_sorted(members) && std::ranges::binary_search(members, job->rank()));
  const auto rank =
      static_cast<std::int32_t>(std::ranges::lower_bound(members, job->rank()) - members.begin());
  const std::string& host = job->member(job->rank()).host;
  for (const std::int32_t member : members)
    if (job->member(member).host != host)
      return user_error(fmt::format("ranks on different machines share no memory: rank {} and rank {}",
                                    job->rank(), member),
                        "use the transport tcp");
  const auto ranks = static_cast<std::int32_t>(members.size());
  if (ranks > kMostLocalRanks)
    return user_error(fmt::format("shared memory supports at most {} ranks: {}", kMostLocalRanks, ranks),
                      "use the transport tcp");
  // All ranks of this host compete for its cores, also those of other groups.
  std::int32_t local = 0;
  for (std::int32_t other = 0; other < job->ranks(); ++other) local += job->member(other).host == host;

  Meeting meeting{.job = std::move(job), .members = std::move(members), .rank = rank, .group = group};
  PeerMemory memory;
  WEFT_TRY(shared, share(meeting, Neighbours::segment_bytes(ranks), Backing::full, memory.card()));
  if (options.single_copy_bytes > 0) {
    const std::vector<std::string_view> cards(shared.said.begin(), shared.said.end());
    WEFT_TRY_STATUS(memory.meet(cards));
  }
  auto neighbours = std::make_shared<Neighbours>(std::move(shared.segment), rank, ranks, patience_for(local),
                                                 std::move(memory), options.single_copy_bytes);
  if (!options.names.empty()) {
    WEFT_TRY(bells, share_bells(meeting, options.bell));
    neighbours->join_larger_group(options.names, std::move(bells));
  }
  auto endpoint = std::make_unique<ShmEndpoint>(std::move(meeting), neighbours, options.name);
  return Neighbourhood{std::move(endpoint), std::move(neighbours)};
}

}  // namespace weft::transport::shm
