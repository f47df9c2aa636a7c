#include "weft/predict/sim/trace/trace_collective.h"

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

namespace weft::sim {
namespace {

using Collective = TraceNode::Collective;

constexpr std::int64_t kMostGates = std::int64_t{1} << 27;  // of all members and chunks: 256 MiB
constexpr std::int32_t kMostMembers = (1 << 15) - 1;        // so that gate counts of any algorithm fit

const std::vector<TraceAlgorithm>& algorithms(const TraceSystem& system, Collective collective) {
  switch (collective) {
    case Collective::all_gather: return system.all_gather;
    case Collective::reduce_scatter: return system.reduce_scatter;
    case Collective::all_to_all: return system.all_to_all;
    default: return system.all_reduce;
  }
}

std::int32_t members_of(const CollectiveCall& call, const TraceNetwork& network) {
  return call.members.empty() ? network.ranks() : static_cast<std::int32_t>(call.members.size());
}

bool is_symmetric(const ChunkPhase& phase, const TraceNetwork& network) {
  if (phase.algorithm == TraceAlgorithm::double_binary_tree) return false;
  if (phase.algorithm != TraceAlgorithm::halving_doubling) return true;
  // On a ring, some ranks would send to the left and some to the right.
  const auto is_ring = [](const TraceDimension& d) { return d.kind == TraceDimension::Kind::ring; };
  if (phase.dimension < 0) return std::ranges::none_of(network.dimensions, is_ring);
  return !is_ring(network.dimensions[static_cast<std::size_t>(phase.dimension)]);
}

// The dimension along which the members differ, if there is exactly one.
std::optional<std::size_t> common_line(std::span<const std::int32_t> members, const TraceNetwork& network) {
  std::optional<std::size_t> line;
  for (std::size_t d = 0; d < network.dimensions.size(); ++d) {
    const std::int32_t first = network.coordinate(members[0], d);
    const bool differ =
        std::ranges::any_of(members, [&](std::int32_t rank) { return network.coordinate(rank, d) != first; });
    if (differ && line) return {};
    if (differ) line = d;
  }
  return line;
}

}  // namespace

bool has_exclusive_wires(std::span<const std::int32_t> members, const TraceNetwork& network) {
  if (members.size() <= 1 || members.size() == static_cast<std::size_t>(network.ranks())) return true;
  const auto line = common_line(members, network);
  if (!line) return false;
  const TraceDimension& dimension = network.dimensions[*line];
  if (dimension.kind != TraceDimension::Kind::ring) return true;
  // The whole ring, in ring order: no other ranks use it.
  if (members.size() != static_cast<std::size_t>(dimension.ranks)) return false;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (network.coordinate(members[i], *line) != static_cast<std::int32_t>(i)) return false;
  return true;
}

Result<std::vector<ChunkPhase>> chunk_phases(const CollectiveCall& call, const TraceNetwork& network,
                                             const TraceSystem& system) {
  std::vector<ChunkPhase> phases;
  double bytes = static_cast<double>(call.bytes) / system.chunks;
  const auto add = [&](Collective collective, TraceAlgorithm algorithm, std::int32_t dimension,
                       std::int32_t ranks) {
    if (ranks <= 1) return;
    // The halving and tree algorithms do not support it; use direct messages.
    if (collective == Collective::all_to_all && algorithm != TraceAlgorithm::ring)
      algorithm = TraceAlgorithm::direct;
    if (collective != Collective::all_reduce && algorithm == TraceAlgorithm::double_binary_tree)
      algorithm = TraceAlgorithm::ring;
    phases.push_back({algorithm, collective, dimension, ranks, bytes, false});
    bytes = phases.back().bytes_after();
  };
  const std::vector<TraceAlgorithm>& list = algorithms(system, call.collective);
  const auto along = [&](std::size_t d) {
    return list.empty() ? TraceAlgorithm::ring : list[std::min(d, list.size() - 1)];
  };

  const std::size_t dimensions = network.dimensions.size();
  if (!call.members.empty() && call.members.size() != static_cast<std::size_t>(network.ranks())) {
    add(call.collective, list.size() == 1 ? list[0] : TraceAlgorithm::ring, -1,
        static_cast<std::int32_t>(call.members.size()));
  } else if (call.collective == Collective::all_reduce && !system.whole_all_reduces) {
    for (std::size_t d = 0; d + 1 < dimensions; ++d)
      add(Collective::reduce_scatter, along(d), static_cast<std::int32_t>(d), network.dimensions[d].ranks);
    add(Collective::all_reduce, along(dimensions - 1), static_cast<std::int32_t>(dimensions - 1),
        network.dimensions.back().ranks);
    for (std::size_t d = dimensions - 1; d-- > 0;)
      add(Collective::all_gather, along(d), static_cast<std::int32_t>(d), network.dimensions[d].ranks);
  } else {
    const bool inward = call.collective == Collective::all_gather;
    for (std::size_t k = 0; k < dimensions; ++k) {
      const std::size_t d = inward ? dimensions - 1 - k : k;
      add(call.collective, along(d), static_cast<std::int32_t>(d), network.dimensions[d].ranks);
    }
  }
  for (const ChunkPhase& phase : phases) {
    const bool halves = phase.algorithm == TraceAlgorithm::halving_doubling ||
                        phase.algorithm == TraceAlgorithm::double_binary_tree;
    if (halves && !std::has_single_bit(static_cast<std::uint32_t>(phase.ranks)))
      return user_error(fmt::format("{} needs a power-of-two number of ranks, found {}",
                                    name(phase.algorithm), phase.ranks),
                        "use ring or direct, which support any number of ranks");
    if (phase.ranks > kMostMembers)
      return user_error(fmt::format("too many ranks in one collective to simulate: {}", phase.ranks));
  }
  std::int64_t gates = 0;
  for (const ChunkPhase& phase : phases) gates += phase.gates();
  if (gates * system.chunks > kMostGates)
    return user_error(fmt::format("{} of {} ranks in {} chunks has more steps than can be simulated",
                                  name(call.collective), members_of(call, network), system.chunks),
                      "fewer preferred-dataset-splits");
  return phases;
}

Status check_each(std::span<const ChunkPhase> phases, std::int32_t members, const TraceSystem& system) {
  std::int64_t gates = 0;
  for (const ChunkPhase& phase : phases) gates += phase.gates();
  if (gates * system.chunks <= kMostGates / std::max(members, 1)) return {};
  return user_error(fmt::format("{} ranks and {} chunks are more than can be simulated rank by rank", members,
                                system.chunks),
                    "fewer preferred-dataset-splits");
}

TraceCollective::TraceCollective(const CollectiveCall& call, std::vector<ChunkPhase> phases,
                                 const TraceNetwork& network, const TraceSystem& system, std::uint32_t run,
                                 Traffic::Folded folded, std::function<void(std::int32_t, double)> ended)
    : call_(call),
      phases_(std::move(phases)),
      network_(network),
      system_(system),
      run_(run),
      folded_(folded),
      ended_(std::move(ended)),
      members_(folded == Traffic::Folded::yes ? 1 : members_of(call, network)),
      chunks_(system.chunks) {
  for (const ChunkPhase& phase : phases_) {
    first_gate_.push_back(gates_);
    gates_ += phase.gates();
  }
  const std::size_t places = static_cast<std::size_t>(members_) * static_cast<std::size_t>(chunks_);
  places_.resize(places);
  early_.resize(places * static_cast<std::size_t>(gates_));
  queues_.resize(static_cast<std::size_t>(members_) * network.dimensions.size());
  left_.assign(static_cast<std::size_t>(members_), chunks_);
}

std::int32_t TraceCollective::rank_of(std::int32_t member) const {
  return call_.members.empty() ? member : call_.members[static_cast<std::size_t>(member)];
}

// A member's position in its phase, and the member at another position of the phase.
std::int32_t TraceCollective::place_in(std::int32_t member, const ChunkPhase& phase) const {
  if (phase.dimension < 0) return member;
  return network_.coordinate(member, static_cast<std::size_t>(phase.dimension));
}

std::int32_t TraceCollective::member_at(std::int32_t member, const ChunkPhase& phase,
                                        std::int32_t place) const {
  if (phase.dimension < 0) return place;
  const std::int32_t stride = network_.stride(static_cast<std::size_t>(phase.dimension));
  return member + (place - place_in(member, phase)) * stride;
}

ChunkPhase TraceCollective::phase_of(const Place& place, std::int32_t chunk) const {
  ChunkPhase phase = phases_[static_cast<std::size_t>(place.phase)];
  phase.mirrored = chunk % 2 == 1;  // so that every rank is a leaf half of the time
  return phase;
}

std::uint16_t& TraceCollective::early(std::int32_t member, std::int32_t chunk, std::int32_t gate) {
  return early_[at(member, chunk) * static_cast<std::size_t>(gates_) + static_cast<std::size_t>(gate)];
}

void TraceCollective::start(double now, Traffic& traffic) {
  for (std::int32_t member = 0; member < members_; ++member) {
    if (phases_.empty()) {
      ended_(member, now);
      continue;
    }
    for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) enter_phase(now, member, chunk, traffic);
  }
}

void TraceCollective::enter_phase(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic) {
  Place& place = places_[at(member, chunk)];
  const std::size_t dimensions = network_.dimensions.size();
  const auto queue_at = [&](std::int32_t phase) {
    const std::int32_t dimension = std::max(phases_[static_cast<std::size_t>(phase)].dimension, 0);
    return static_cast<std::size_t>(member) * dimensions + static_cast<std::size_t>(dimension);
  };
  const std::int32_t before = place.phase++;
  place.gate = -1;
  const bool over = place.phase == static_cast<std::int32_t>(phases_.size());
  if (over && --left_[static_cast<std::size_t>(member)] == 0) ended_(member, now);
  if (!over) queues_[queue_at(place.phase)].waiting.push_back(chunk);
  if (before >= 0) {
    --queues_[queue_at(before)].running;
    admit(now, member, queue_at(before), traffic);
  }
  if (!over) admit(now, member, queue_at(place.phase), traffic);
}

void TraceCollective::admit(double now, std::int32_t member, std::size_t number, Traffic& traffic) {
  while (!queues_[number].waiting.empty() && queues_[number].running < system_.active_chunks) {
    const std::int32_t chunk = queues_[number].waiting.front();
    queues_[number].waiting.pop_front();
    ++queues_[number].running;
    places_[at(member, chunk)].gate = 0;
    await(now, member, chunk, traffic);
  }
}

// Waits for the next gate, and processes messages that arrived early for it.
void TraceCollective::await(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic) {
  Place& place = places_[at(member, chunk)];
  const std::size_t p = static_cast<std::size_t>(place.phase);
  place.have = 0;
  const ChunkPhase phase = phase_of(place, chunk);
  const std::int32_t needs = phase.needs(place_in(member, phase), place.gate);
  if (needs == 0) {
    const double wait = place.gate == 0 ? system_.endpoint_seconds : 0;
    traffic.tell(now + wait,
                 {kBegun, run_, static_cast<std::uint32_t>(member), static_cast<std::uint32_t>(chunk)});
    return;
  }
  for (std::uint16_t& waiting = early(member, chunk, first_gate_[p] + place.gate); waiting > 0; --waiting)
    process(now, member, chunk, traffic);
}

void TraceCollective::process(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic) {
  const Place& place = places_[at(member, chunk)];
  const ChunkPhase phase = phase_of(place, chunk);
  double seconds = system_.endpoint_seconds;
  if (phase.reduces(place.gate) && system_.memory_bytes_per_second > 0) {
    // Both operands are read, the sum is written.
    seconds += 3 * phase.received_bytes(place.gate) / system_.memory_bytes_per_second;
  }
  traffic.tell(now + seconds,
               {kProcessed, run_, static_cast<std::uint32_t>(member), static_cast<std::uint32_t>(chunk)});
}

void TraceCollective::open(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic) {
  Place& place = places_[at(member, chunk)];
  const std::size_t p = static_cast<std::size_t>(place.phase);
  const ChunkPhase phase = phase_of(place, chunk);
  const std::uint32_t numbered = static_cast<std::uint32_t>(first_gate_[p]);
  phase.sends(place_in(member, phase), place.gate, [&](std::int32_t to, double bytes, std::int32_t gate) {
    const std::int32_t peer = member_at(member, phase, to);
    const std::uint32_t target = folded_ == Traffic::Folded::yes ? 0 : static_cast<std::uint32_t>(peer);
    const std::uint32_t detail = static_cast<std::uint32_t>(chunk) * static_cast<std::uint32_t>(gates_) +
                                 numbered + static_cast<std::uint32_t>(gate);
    traffic.send(now, rank_of(member), rank_of(peer), bytes, {kArrived, run_, target, detail});
  });
  if (++place.gate == phase.gates()) return enter_phase(now, member, chunk, traffic);
  await(now, member, chunk, traffic);
}

void TraceCollective::handle(const Happening& happening, Traffic& traffic) {
  const auto member = static_cast<std::int32_t>(happening.note.member);
  const double now = happening.time;
  if (happening.note.what == kBegun)
    return open(now, member, static_cast<std::int32_t>(happening.note.detail), traffic);
  if (happening.note.what == kProcessed) {
    const auto chunk = static_cast<std::int32_t>(happening.note.detail);
    Place& place = places_[at(member, chunk)];
    const ChunkPhase phase = phase_of(place, chunk);
    if (++place.have == phase.needs(place_in(member, phase), place.gate)) open(now, member, chunk, traffic);
    return;
  }
  const std::uint32_t gates = static_cast<std::uint32_t>(gates_);
  const auto chunk = static_cast<std::int32_t>(happening.note.detail / gates);
  const auto gate = static_cast<std::int32_t>(happening.note.detail % gates);
  const Place& place = places_[at(member, chunk)];
  const bool awaited = place.gate >= 0 && place.phase >= 0 &&
                       place.phase < static_cast<std::int32_t>(phases_.size()) &&
                       first_gate_[static_cast<std::size_t>(place.phase)] + place.gate == gate;
  if (awaited) return process(now, member, chunk, traffic);
  ++early(member, chunk, gate);
}

Result<CollectiveEnds> run_alone(const CollectiveCall& call, const TraceNetwork& network,
                                 const TraceSystem& system, bool exact) {
  WEFT_TRY(phases, chunk_phases(call, network, system));
  const bool symmetric =
      !exact && std::ranges::all_of(phases, [&](const ChunkPhase& p) { return is_symmetric(p, network); });
  const auto folded = symmetric ? Traffic::Folded::yes : Traffic::Folded::no;
  const std::int32_t members = members_of(call, network);
  if (!symmetric) WEFT_TRY_STATUS(check_each(phases, members, system));

  Traffic traffic(network, system.wires, folded);
  CollectiveEnds ends;
  ends.seconds.resize(symmetric ? 1 : static_cast<std::size_t>(members));
  TraceCollective run(
      call, std::move(phases), network, system, 0, folded,
      [&](std::int32_t member, double time) { ends.seconds[static_cast<std::size_t>(member)] = time; });
  run.start(0, traffic);
  while (const auto next = traffic.next()) run.handle(*next, traffic);
  ends.events = traffic.events();
  ends.stands_for = symmetric ? ends.events * members : ends.events;
  return ends;
}

}  // namespace weft::sim
