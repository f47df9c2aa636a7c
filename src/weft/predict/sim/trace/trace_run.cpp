#include "weft/predict/sim/trace/trace_run.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/predict/sim/trace/trace_check.h"
#include "weft/predict/sim/trace/trace_collective.h"
#include "weft/predict/sim/trace/trace_deadlock.h"

namespace weft::sim {
namespace {

using Kind = TraceNode::Kind;

enum Room : std::uint8_t { kCpu, kGpu, kCommunication, kRooms, kNoRoom = kRooms };

Room room_of(const TraceNode& node) {
  if (node.kind == Kind::nothing || node.kind == Kind::receive) return kNoRoom;
  if (node.on_cpu) return kCpu;
  return node.kind == Kind::compute ? kGpu : kCommunication;
}

// The state of a rank's nodes.
struct Rank {
  std::vector<std::uint32_t> missing;                    // by node: dependencies not done yet
  std::vector<std::uint32_t> first_follower, followers;  // dependents by node, concatenated
  std::vector<double> begin;
  std::array<std::int32_t, kRooms> room = {1, 1, 1};
  std::array<std::vector<std::uint32_t>, kRooms> ready;  // heaps, smallest id first
};

// The ranks that have arrived at one collective, in the order of its group.
struct Meeting {
  std::vector<std::int64_t> nodes;  // -1: not arrived
  std::size_t absent = 0;
};
using MeetingKey = std::tuple<std::int32_t, TraceNode::Collective, std::int64_t>;  // group, kind, bytes
using MessageKey = std::tuple<std::int32_t, std::int32_t, std::int64_t>;           // from, to, tag

class Runner {
 public:
  Runner(const ExecutionTrace& trace, const TraceNetwork& network, const TraceSystem& system,
         const TraceRunOptions& options, GroupPositions places)
      : trace_(trace),
        network_(network),
        system_(system),
        options_(options),
        traffic_(network, system.wires),
        member_of_(std::move(places)) {}

  Result<TraceRun> run() {
    prepare();
    WEFT_TRY_STATUS(settle());
    while (const auto next = traffic_.next()) {
      now_ = next->time;
      handle(*next);
      WEFT_TRY_STATUS(settle());
    }
    for (const auto& states : states_)
      if (std::ranges::any_of(states, [](NodeState state) { return state != NodeState::done; }))
        return standstill(trace_, states_);
    for (RankTotals& totals : result_.ranks) {
      totals.exposed_seconds = std::max(totals.seconds - totals.compute_seconds, 0.0);
      result_.seconds = std::max(result_.seconds, totals.seconds);
    }
    result_.events += traffic_.events();
    result_.stands_for += traffic_.events();
    result_.shapes = static_cast<std::int64_t>(known_.size());
    return std::move(result_);
  }

 private:
  enum What : std::uint32_t { kNodeEnds = TraceCollective::kWhats, kMessageArrives };

  const TraceNode& node(std::int32_t rank, std::uint32_t n) const {
    return trace_.ranks[static_cast<std::size_t>(rank)].nodes[n];
  }
  NodeState& state(std::int32_t rank, std::uint32_t n) { return states_[static_cast<std::size_t>(rank)][n]; }

  void prepare();
  void handle(const Happening& happening);
  Status settle();
  void finish(std::int32_t rank, std::uint32_t n);
  void make_ready(std::int32_t rank, std::uint32_t n);
  Status start(std::int32_t rank, std::uint32_t n);
  Status join(std::int32_t rank, std::uint32_t n);
  Status begin_collective(const TraceNode& first, std::int32_t group, std::vector<std::int64_t> nodes);
  void end_later(double time, std::int32_t rank, std::uint32_t n) {
    traffic_.tell(time, {kNodeEnds, static_cast<std::uint32_t>(rank), n, 0});
  }
  double seconds_of(const TraceNode& node) const;
  std::int32_t member_rank(std::int32_t group, std::size_t member) const {
    return group < 0 ? static_cast<std::int32_t>(member)
                     : trace_.groups[static_cast<std::size_t>(group)].ranks[member];
  }
  // The members for CollectiveCall: empty if the group is all ranks in order.
  std::vector<std::int32_t> call_members(std::int32_t group) const;

  const ExecutionTrace& trace_;
  const TraceNetwork& network_;
  const TraceSystem& system_;
  const TraceRunOptions options_;
  Traffic traffic_;
  TraceRun result_;
  double now_ = 0;

  std::vector<Rank> ranks_;
  NodeStates states_;
  const GroupPositions member_of_;
  std::map<MeetingKey, std::vector<Meeting>> meetings_;
  std::map<MessageKey, std::pair<std::int64_t, std::vector<std::uint32_t>>>
      mail_;  // messages that arrived, and receives that wait
  std::map<CollectiveCall, CollectiveEnds> known_;
  struct Live {
    std::unique_ptr<TraceCollective> run;
    std::size_t left = 0;
  };
  std::vector<Live> live_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::pair<std::int32_t, std::uint32_t>> finished_;
  std::vector<std::int32_t> touched_;
};

void Runner::prepare() {
  const std::size_t ranks = static_cast<std::size_t>(network_.ranks());
  ranks_.resize(ranks);
  states_.resize(ranks);
  result_.ranks.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    Rank& rank = ranks_[r];
    const std::vector<TraceNode>& nodes = trace_.ranks[r].nodes;
    rank.room[kCommunication] = system_.communications;
    rank.missing.resize(nodes.size());
    rank.begin.resize(nodes.size());
    rank.first_follower.resize(nodes.size() + 1);
    states_[r].assign(nodes.size(), NodeState::waiting);
    result_.nodes += static_cast<std::int64_t>(nodes.size());
    for (const TraceNode& node : nodes)
      for (const std::uint32_t before : node.after) ++rank.first_follower[before + 1];
    std::partial_sum(rank.first_follower.begin(), rank.first_follower.end(), rank.first_follower.begin());
    rank.followers.resize(rank.first_follower.back());
    std::vector<std::uint32_t> next(rank.first_follower.begin(), rank.first_follower.end() - 1);
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      rank.missing[n] = static_cast<std::uint32_t>(nodes[n].after.size());
      for (const std::uint32_t before : nodes[n].after) rank.followers[next[before]++] = n;
      if (nodes[n].after.empty()) make_ready(static_cast<std::int32_t>(r), n);
    }
  }
}

double Runner::seconds_of(const TraceNode& node) const {
  if (node.kind != Kind::compute || node.on_cpu || !system_.roofline) return node.seconds;
  if (node.tensor_bytes <= 0) return 0;  // a node that only groups others
  double seconds = 0;
  if (system_.operations_per_second > 0) seconds = node.operations / system_.operations_per_second;
  if (system_.memory_bytes_per_second > 0)
    seconds = std::max(seconds, node.tensor_bytes / system_.memory_bytes_per_second);
  return seconds;
}

void Runner::make_ready(std::int32_t rank, std::uint32_t n) {
  const Room room = room_of(node(rank, n));
  state(rank, n) = NodeState::ready;
  if (room == kNoRoom) {
    state(rank, n) = NodeState::running;
    ranks_[static_cast<std::size_t>(rank)].begin[n] = now_;
    if (node(rank, n).kind == Kind::nothing) {
      finished_.emplace_back(rank, n);
      return;
    }
    auto& [arrived, waiting] = mail_[{node(rank, n).peer, rank, node(rank, n).tag}];
    if (arrived > 0) {
      --arrived;
      finished_.emplace_back(rank, n);
    } else {
      waiting.push_back(n);
    }
    return;
  }
  auto& heap = ranks_[static_cast<std::size_t>(rank)].ready[room];
  heap.push_back(n);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
  touched_.push_back(rank);
}

// Starts all nodes that can start now.
Status Runner::settle() {
  while (!finished_.empty() || !touched_.empty()) {
    while (!finished_.empty()) {
      const auto [rank, n] = finished_.back();
      finished_.pop_back();
      finish(rank, n);
    }
    std::vector<std::int32_t> touched;
    touched.swap(touched_);
    std::ranges::sort(touched);
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::int32_t r : touched) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      for (std::size_t room = 0; room < kRooms; ++room) {
        auto& heap = rank.ready[room];
        while (rank.room[room] > 0 && !heap.empty()) {
          std::pop_heap(heap.begin(), heap.end(), std::greater<>());
          const std::uint32_t n = heap.back();
          heap.pop_back();
          --rank.room[room];
          WEFT_TRY_STATUS(start(r, n));
        }
      }
    }
  }
  return {};
}

void Runner::finish(std::int32_t r, std::uint32_t n) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  RankTotals& totals = result_.ranks[static_cast<std::size_t>(r)];
  state(r, n) = NodeState::done;
  totals.seconds = std::max(totals.seconds, now_);
  if (const Room room = room_of(node(r, n)); room != kNoRoom) {
    ++rank.room[room];
    touched_.push_back(r);
    if (room == kGpu) totals.compute_seconds += now_ - rank.begin[n];
    if (room == kCommunication) totals.communication_seconds += now_ - rank.begin[n];
  }
  if (options_.timeline && node(r, n).kind != Kind::nothing)
    result_.timeline.push_back({r, n, rank.begin[n], now_});
  for (std::uint32_t f = rank.first_follower[n]; f < rank.first_follower[n + 1]; ++f)
    if (--rank.missing[rank.followers[f]] == 0) make_ready(r, rank.followers[f]);
}

Status Runner::start(std::int32_t rank, std::uint32_t n) {
  const TraceNode& node = this->node(rank, n);
  state(rank, n) = NodeState::running;
  ranks_[static_cast<std::size_t>(rank)].begin[n] = now_;
  if (node.kind == Kind::collective) return join(rank, n);
  if (node.kind == Kind::send) {
    const Note note{kMessageArrives, static_cast<std::uint32_t>(rank), n, 0};
    if (system_.replay) {
      traffic_.tell(now_ + node.seconds, note);
    } else {
      traffic_.send(now_, rank, node.peer, static_cast<double>(node.bytes), note);
    }
    return {};
  }
  end_later(now_ + seconds_of(node), rank, n);
  return {};
}

std::vector<std::int32_t> Runner::call_members(std::int32_t group) const {
  if (group < 0) return {};
  const std::vector<std::int32_t>& ranks = trace_.groups[static_cast<std::size_t>(group)].ranks;
  const bool all =
      ranks.size() == static_cast<std::size_t>(network_.ranks()) && std::ranges::is_sorted(ranks);
  return all ? std::vector<std::int32_t>() : ranks;
}

// The rank joins the first matching collective that it has not joined yet.
Status Runner::join(std::int32_t rank, std::uint32_t n) {
  const TraceNode& node = this->node(rank, n);
  const std::size_t size = node.group < 0 ? static_cast<std::size_t>(network_.ranks())
                                          : trace_.groups[static_cast<std::size_t>(node.group)].ranks.size();
  const std::size_t place = node.group < 0 ? static_cast<std::size_t>(rank)
                                           : member_of_[static_cast<std::size_t>(node.group)].at(rank);
  std::vector<Meeting>& open = meetings_[{node.group, node.collective, node.bytes}];
  auto meeting = std::ranges::find_if(open, [&](const Meeting& m) { return m.nodes[place] < 0; });
  if (meeting == open.end()) meeting = open.insert(open.end(), {std::vector<std::int64_t>(size, -1), size});
  meeting->nodes[place] = n;
  if (--meeting->absent > 0) return {};
  std::vector<std::int64_t> nodes = std::move(meeting->nodes);
  open.erase(meeting);
  return begin_collective(node, node.group, std::move(nodes));
}

Status Runner::begin_collective(const TraceNode& first, std::int32_t group, std::vector<std::int64_t> nodes) {
  ++result_.collectives;
  const auto end_member = [&](std::size_t member, double time) {
    end_later(time, member_rank(group, member), static_cast<std::uint32_t>(nodes[member]));
  };
  // A collective of unknown size, or without an algorithm, takes its recorded time.
  if (system_.replay || first.collective == TraceNode::Collective::other || first.bytes <= 0) {
    for (std::size_t m = 0; m < nodes.size(); ++m)
      end_member(m, now_ + node(member_rank(group, m), static_cast<std::uint32_t>(nodes[m])).seconds);
    return {};
  }
  CollectiveCall call{first.collective, first.bytes, call_members(group)};
  if (has_exclusive_wires(call.members, network_)) {
    // The network looks the same from every rank, so only relative positions of the members matter.
    CollectiveCall shape = call;
    if (!shape.members.empty()) {
      for (std::int32_t& member : shape.members) {
        std::int32_t moved = 0;
        for (std::size_t d = 0; d < network_.dimensions.size(); ++d) {
          const std::int32_t ranks = network_.dimensions[d].ranks;
          const std::int32_t apart = network_.coordinate(member, d) - network_.coordinate(call.members[0], d);
          moved += (apart + ranks) % ranks * network_.stride(d);
        }
        member = moved;
      }
    }
    auto known = known_.find(shape);
    if (known == known_.end()) {
      WEFT_TRY(ends, run_alone(shape, network_, system_, options_.exact));
      result_.events += ends.events;
      known = known_.emplace(std::move(shape), std::move(ends)).first;
    }
    const CollectiveEnds& ends = known->second;
    result_.stands_for += ends.stands_for;
    for (std::size_t m = 0; m < nodes.size(); ++m)
      end_member(m, now_ + ends.seconds[ends.seconds.size() == 1 ? 0 : m]);
    return {};
  }
  WEFT_TRY(phases, chunk_phases(call, network_, system_));
  WEFT_TRY_STATUS(check_each(phases, static_cast<std::int32_t>(nodes.size()), system_));
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(live_.size()));
    live_.emplace_back();
  }
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  live_[number].left = nodes.size();
  live_[number].run = std::make_unique<TraceCollective>(
      call, std::move(phases), network_, system_, number, Traffic::Folded::no,
      [this, number, group, nodes = std::move(nodes)](std::int32_t member, double) {
        const std::size_t m = static_cast<std::size_t>(member);
        finished_.emplace_back(member_rank(group, m), static_cast<std::uint32_t>(nodes[m]));
        --live_[number].left;
      });
  live_[number].run->start(now_, traffic_);
  return {};
}

void Runner::handle(const Happening& happening) {
  const Note& note = happening.note;
  if (note.what < TraceCollective::kWhats) {
    Live& live = live_[note.run];
    live.run->handle(happening, traffic_);
    if (live.left == 0) {
      live.run.reset();
      unused_.push_back(note.run);
    }
    return;
  }
  const auto rank = static_cast<std::int32_t>(note.run);
  finished_.emplace_back(rank, note.member);
  if (note.what == kNodeEnds) return;
  const TraceNode& send = node(rank, note.member);
  auto& [arrived, waiting] = mail_[{rank, send.peer, send.tag}];
  if (waiting.empty()) {
    ++arrived;
  } else {
    finished_.emplace_back(send.peer, waiting.front());
    waiting.erase(waiting.begin());
  }
}

}  // namespace

Result<TraceRun> run_trace(const ExecutionTrace& trace, const TraceNetwork& network,
                           const TraceSystem& system, const TraceRunOptions& options) {
  WEFT_TRY_STATUS(check(network));
  WEFT_TRY(places, check(trace, network, system));
  return Runner(trace, network, system, options, std::move(places)).run();
}

}  // namespace weft::sim
