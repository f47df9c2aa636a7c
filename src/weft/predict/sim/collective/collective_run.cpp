#include "weft/predict/sim/collective/collective_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace weft::sim {
namespace {

using collective::Action;
using collective::Agent;
using collective::Cell;

// Times closer than this are one event time. Symmetric flows end together except for their last
// digits, and rates are recomputed once for all of them.
constexpr double kMoment = 1e-13;

std::uint64_t key(const Cell& cell, std::int32_t offset) {
  return (static_cast<std::uint64_t>(cell.rank) << 2 | static_cast<std::uint64_t>(cell.buffer)) << 32 |
         static_cast<std::uint32_t>(cell.index + offset);
}

}  // namespace

std::int32_t messages_of(const Action& action, const RunParameters& parameters, double slice_bytes) {
  if ((action.take < 0 && action.give < 0) || slice_bytes <= 0) return 1;
  // A slot holds as many whole chunks as fit, and at least one.
  const double chunks = std::max(1.0, std::floor(parameters.slot_bytes / slice_bytes * (1 + 1e-12)));
  return static_cast<std::int32_t>(std::max(1.0, std::ceil(action.count / chunks)));
}

CollectiveRun::CollectiveRun(const collective::Actions& actions, const Ways& ways, Network& network,
                             const RunParameters& parameters, double slice_bytes, std::int32_t slices,
                             Timeline timeline)
    : actions_(actions),
      ways_(ways),
      network_(network),
      parameters_(parameters),
      slice_bytes_(slice_bytes),
      slices_(slices),
      timeline_(timeline),
      agents_(actions.agents.size()),
      steps_(actions.agents.size(), 0),
      connections_(actions.connections.size()),
      counters_(actions.counters.size()),
      gathered_(actions.barriers.size()),
      slice_ends_(static_cast<std::size_t>(slices), 0) {
  for (std::size_t c = 0; c < counters_.size(); ++c) counters_[c].value = actions.counters[c].initial;
  for (std::size_t a = 0; a < agents_.size(); ++a) {
    const Agent& agent = actions.agents[a];
    agents_[a].action = agent.first;
    for (std::int32_t k = agent.first; k < agent.end; ++k)
      steps_[a] = std::max(steps_[a], actions.actions[static_cast<std::size_t>(k)].step + 1);
  }
}

// The position over all slices and steps, as a published flag counts it.
std::int64_t CollectiveRun::position(std::int32_t agent, std::int32_t slice, std::int32_t step) const {
  return std::int64_t{slice} * steps_[static_cast<std::size_t>(agent)] + step + 1;
}

void CollectiveRun::foresee(double time, Happening what, std::int32_t index) {
  queue_.push_back({time, order_++, what, index});
  std::push_heap(queue_.begin(), queue_.end());
}

void CollectiveRun::run() {
  for (std::size_t a = 0; a < agents_.size(); ++a)
    if (actions_.agents[a].first < actions_.agents[a].end) {
      agents_[a].waiting = true;
      enter(static_cast<std::int32_t>(a));
    }
  while (true) {
    for (std::size_t i = 0; i < ready_.size(); ++i) try_advance(ready_[i]);
    ready_.clear();
    network_.settle(now_);
    const auto flow = network_.next();
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const double next = std::min(flow ? flow->first : kNever, queue_.empty() ? kNever : queue_.front().time);
    if (next == kNever) return;
    now_ = std::max(now_, next);
    while (!queue_.empty() && queue_.front().time <= now_ + kMoment) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Event event = queue_.back();
      queue_.pop_back();
      ++events_;
      happen(event);
    }
    for (auto ended = network_.next(); ended && ended->first <= now_ + kMoment; ended = network_.next()) {
      ++events_;
      flow_ended(ended->second);
    }
  }
}

void CollectiveRun::happen(const Event& event) {
  const auto index = static_cast<std::size_t>(event.index);
  switch (event.what) {
    case Happening::start: begin(event.index); break;
    case Happening::done: complete(event.index); break;
    case Happening::message:
      ++connections_[index].arrived;
      wake_if(actions_.connections[index].taker, Wait::message);
      break;
    case Happening::slot:
      --connections_[index].occupied;
      wake_if(actions_.connections[index].giver, Wait::slot);
      break;
    case Happening::raise:
      ++counters_[index].value;
      wake(counters_[index].watchers);
      break;
    case Happening::written: {
      const Action& action = actions_.actions[index];
      for (const Cell& cell : actions_.targets(action))
        if (cell.packet) write_packets(cell, action.count);
      break;
    }
  }
}

// Lets the watchers retry. Those that still cannot proceed will wait again.
void CollectiveRun::wake(std::vector<std::int32_t>& watchers) {
  ready_.insert(ready_.end(), watchers.begin(), watchers.end());
  watchers.clear();
}

void CollectiveRun::wake_if(std::int32_t agent, Wait wait) {
  if (agent < 0) return;
  const AgentState& state = agents_[static_cast<std::size_t>(agent)];
  if (state.waiting && state.wait == wait) ready_.push_back(agent);
}

std::int32_t CollectiveRun::parts_of(const Action& action) const {
  return messages_of(action, parameters_, slice_bytes_);
}

// Enters an action for the first time.
void CollectiveRun::enter(std::int32_t agent) {
  AgentState& state = agents_[static_cast<std::size_t>(agent)];
  state.part = 0;
  state.parts = parts_of(action_of(state));
  state.wait = Wait::step;
  ready_.push_back(agent);
}

void CollectiveRun::try_advance(std::int32_t agent) {
  AgentState& state = agents_[static_cast<std::size_t>(agent)];
  if (!state.waiting) return;
  const Action& action = action_of(state);
  while (state.wait != Wait::nothing) {
    if (!pass(agent, state, action)) return;
    state.wait = static_cast<Wait>(static_cast<std::uint8_t>(state.wait) + 1);
  }
  state.waiting = false;
  if (state.part == 0) state.begin = now_;
  if (action.give >= 0) ++connections_[static_cast<std::size_t>(action.give)].occupied;
  if (action.take >= 0) --connections_[static_cast<std::size_t>(action.take)].arrived;
  foresee(now_ + parameters_.step_seconds, Happening::start, agent);
}

// Whether the agent can proceed past state.wait. If not, registers it to be woken.
bool CollectiveRun::pass(std::int32_t agent, AgentState& state, const Action& action) {
  switch (state.wait) {
    case Wait::step: {
      if (action.wait_agent < 0) return true;
      AgentState& other = agents_[static_cast<std::size_t>(action.wait_agent)];
      if (other.published >= position(action.wait_agent, state.slice, action.wait_step)) return true;
      other.watchers.push_back(agent);
      return false;
    }
    case Wait::message:
      return action.take < 0 || connections_[static_cast<std::size_t>(action.take)].arrived > 0;
    case Wait::slot:
      return action.give < 0 ||
             connections_[static_cast<std::size_t>(action.give)].occupied < parameters_.slots;
    case Wait::packets: return packets_arrived(agent, state, action);
    case Wait::counter: {
      if (action.consume < 0) return true;
      CounterState& counter = counters_[static_cast<std::size_t>(action.consume)];
      if (counter.value > 0) {
        --counter.value;
        return true;
      }
      counter.watchers.push_back(agent);
      return false;
    }
    case Wait::barrier: {
      if (action.barrier < 0) return true;
      const auto b = static_cast<std::size_t>(action.barrier);
      // An agent that is woken twice at one time counts once.
      if (std::ranges::find(gathered_[b], agent) != gathered_[b].end()) return false;
      gathered_[b].push_back(agent);
      if (gathered_[b].size() < actions_.barriers[b].members.size()) return false;
      for (const std::int32_t member : gathered_[b]) {
        if (member == agent) continue;
        agents_[static_cast<std::size_t>(member)].wait = Wait::nothing;
        ready_.push_back(member);
      }
      gathered_[b].clear();
      return true;
    }
    case Wait::nothing: return true;
  }
  return true;
}

bool CollectiveRun::packets_arrived(std::int32_t agent, const AgentState& state, const Action& action) {
  for (const Cell& cell : actions_.sources(action)) {
    if (!cell.packet) continue;
    for (std::int32_t k = 0; k < action.count; ++k) {
      PacketState& packet = packets_[key(cell, k)];
      if (packet.writes > state.slice) continue;
      packet.watchers.push_back(agent);
      return false;
    }
  }
  return true;
}

void CollectiveRun::write_packets(const Cell& cell, std::int32_t count) {
  for (std::int32_t k = 0; k < count; ++k) {
    PacketState& packet = packets_[key(cell, k)];
    ++packet.writes;
    wake(packet.watchers);
  }
}

// All flows of an action start at once and share the rate of the threadblock that copies.
void CollectiveRun::begin(std::int32_t agent) {
  AgentState& state = agents_[static_cast<std::size_t>(agent)];
  const Action& action = action_of(state);
  const double bytes = slice_bytes_ * action.count / state.parts;
  const bool adds = action.sources + (action.take >= 0 ? 1 : 0) > 1;
  const double fastest = adds ? parameters_.reduce_bytes_per_second : parameters_.copy_bytes_per_second;

  planned_.clear();
  state.extra = 0;
  if (action.give >= 0)
    planned_.push_back(
        {&ways_.connections[static_cast<std::size_t>(action.give)], parameters_.efficiency, action.give});
  for (std::int32_t i = 0; i < action.sources + action.targets; ++i) {
    const auto index = static_cast<std::size_t>(action.first_cell + i);
    const Way& way = ways_.cells[index];
    if (way.route < 0) continue;
    planned_.push_back({&way, actions_.cells[index].packet ? parameters_.packet_efficiency : 1, -1});
    // A remote read costs a round trip.
    if (i < action.sources) state.extra = std::max(state.extra, 2 * way.latency_seconds);
  }
  if (planned_.empty()) {
    const bool moves = action.sources > 0 || action.targets > 0 || action.take >= 0;
    const double seconds = moves ? bytes / fastest : 0;
    return foresee(now_ + seconds, Happening::done, agent);
  }
  state.pending = static_cast<std::int32_t>(planned_.size());
  for (const PlannedFlow& planned : planned_) {
    const double pace = fastest / (planned.efficiency * static_cast<double>(planned_.size()));
    const std::int32_t flow = network_.start(now_, planned.way->route, bytes / planned.efficiency, pace);
    if (static_cast<std::size_t>(flow) >= uses_.size()) uses_.resize(static_cast<std::size_t>(flow) + 1);
    uses_[static_cast<std::size_t>(flow)] = {agent, planned.connection};
  }
}

void CollectiveRun::flow_ended(std::int32_t flow) {
  network_.finish(flow);
  const FlowUse use = uses_[static_cast<std::size_t>(flow)];
  AgentState& state = agents_[static_cast<std::size_t>(use.agent)];
  if (use.connection >= 0)
    foresee(now_ + ways_.connections[static_cast<std::size_t>(use.connection)].latency_seconds +
                parameters_.message_seconds,
            Happening::message, use.connection);
  if (--state.pending > 0) return;
  if (state.extra > 0)
    foresee(now_ + state.extra, Happening::done, use.agent);
  else
    complete(use.agent);
}

void CollectiveRun::complete(std::int32_t agent) {
  AgentState& state = agents_[static_cast<std::size_t>(agent)];
  const Action& action = action_of(state);
  if (action.take >= 0)
    foresee(now_ + ways_.connections[static_cast<std::size_t>(action.take)].latency_seconds +
                parameters_.message_seconds,
            Happening::slot, action.take);
  state.waiting = true;
  if (++state.part < state.parts) {
    state.wait = Wait::message;
    ready_.push_back(agent);
    return;
  }
  bool packets = false;
  double farthest = 0;
  for (std::int32_t i = action.sources; i < action.sources + action.targets; ++i) {
    const auto index = static_cast<std::size_t>(action.first_cell + i);
    packets = packets || actions_.cells[index].packet;
    farthest = std::max(farthest, ways_.cells[index].latency_seconds);
  }
  if (packets) foresee(now_ + farthest, Happening::written, state.action);
  if (action.publishes) {
    state.published = position(agent, state.slice, action.step);
    wake(state.watchers);
  }
  if (action.raise >= 0) {
    const double away = ways_.signals[static_cast<std::size_t>(state.action)];
    foresee(now_ + away + (away > 0 ? parameters_.message_seconds : 0), Happening::raise, action.raise);
  }
  if (timeline_ == Timeline::yes) stretches_.push_back({agent, state.action, state.slice, state.begin, now_});

  if (++state.action == actions_.agents[static_cast<std::size_t>(agent)].end) {
    double& end = slice_ends_[static_cast<std::size_t>(state.slice)];
    end = std::max(end, now_);
    state.action = actions_.agents[static_cast<std::size_t>(agent)].first;
    if (++state.slice == slices_) {
      state.waiting = false;
      return;
    }
  }
  enter(agent);
}

// A full connection explains more than the agents that wait for messages from it.
std::string CollectiveRun::standstill() const {
  std::string first;
  for (std::size_t a = 0; a < agents_.size(); ++a) {
    const Agent& agent = actions_.agents[a];
    const AgentState& state = agents_[a];
    if (agent.first == agent.end || state.slice == slices_) continue;
    if (!first.empty() && state.wait != Wait::slot) continue;
    const Action& action = action_of(state);
    first = fmt::format("gpu {} tb {} step {} waits for {}", agent.rank, agent.block, action.step,
                        awaited(state, action));
    if (state.wait == Wait::slot) break;
  }
  return first;
}

std::string CollectiveRun::awaited(const AgentState& state, const Action& action) const {
  switch (state.wait) {
    case Wait::step: {
      const Agent& other = actions_.agents[static_cast<std::size_t>(action.wait_agent)];
      return fmt::format("tb {} step {}", other.block, action.wait_step);
    }
    case Wait::message:
      return fmt::format("a message from gpu {}",
                         actions_.connections[static_cast<std::size_t>(action.take)].from);
    case Wait::slot:
      return fmt::format("a free slot to gpu {}",
                         actions_.connections[static_cast<std::size_t>(action.give)].to);
    case Wait::packets: return "a packet";
    case Wait::counter: return actions_.counters[static_cast<std::size_t>(action.consume)].name;
    case Wait::barrier: return "the others at a barrier";
    case Wait::nothing: return "nothing";
  }
  return {};
}

}  // namespace weft::sim
