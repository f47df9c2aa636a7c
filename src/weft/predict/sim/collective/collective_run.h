// weft/predict/sim/collective/collective_run.h -- the event loop of simulate().
//
//   try_advance      passes the agent's waits as far as possible: dependency, message, slot, packets, counter,
//               barrier
//   begin       the agent starts its step; its bytes are sent or copied
//   complete    the step is done: slots are released, messages and signals are sent, the next step is tried
//
// Events are kept in a heap, ordered by time and then by the order in which they were scheduled.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/collectives/chunks/actions.h"
#include "weft/predict/sim/collective/program_routes.h"
#include "weft/predict/sim/collective/simulate_collective.h"
#include "weft/predict/sim/network.h"

namespace weft::sim {

// How many messages an action sends or receives, if a slot holds this many bytes of every chunk; 1
// for other actions.
std::int32_t messages_of(const collective::Action& action, const RunParameters& parameters,
                         double slice_bytes);

class CollectiveRun {
 public:
  // `slice_bytes` is the size of one slice of one chunk.
  CollectiveRun(const collective::Actions& actions, const Ways& ways, Network& network,
                const RunParameters& parameters, double slice_bytes, std::int32_t slices, Timeline timeline);

  // Runs until no event is left.
  void run();

  // The first agent that has not finished, and what it waits for; empty if all have finished.
  std::string standstill() const;

  std::int64_t events() const { return events_; }
  // When the last agent finished each slice.
  const std::vector<double>& slice_ends() const { return slice_ends_; }
  std::vector<Stretch> take_timeline() { return std::move(stretches_); }

 private:
  // What an agent waits for, in the order of the checks.
  enum class Wait : std::uint8_t { step, message, slot, packets, counter, barrier, nothing };
  struct AgentState {
    std::int32_t action = 0;  // in Actions::actions
    std::int32_t slice = 0;
    std::int32_t part = 0;  // index of the current message of the action
    std::int32_t parts = 1;
    std::int32_t pending = 0;  // flows in progress
    Wait wait = Wait::step;
    bool waiting = false;
    double begin = 0;
    double extra = 0;                    // seconds between the end of its flows and its own
    std::int64_t published = 0;          // position() of the last step visible to others
    std::vector<std::int32_t> watchers;  // agents that wait for a step of this one
  };
  struct ConnectionState {
    std::int32_t arrived = 0;   // messages not received yet
    std::int32_t occupied = 0;  // slots
  };
  struct CounterState {
    std::int64_t value = 0;
    std::vector<std::int32_t> watchers;
  };
  struct PacketState {
    std::int32_t writes = 0;
    std::vector<std::int32_t> watchers;
  };
  enum class Happening : std::uint8_t { start, done, message, slot, raise, written };
  struct Event {
    double time;
    std::int64_t order;
    Happening what;
    std::int32_t index;

    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  struct FlowUse {
    std::int32_t agent = 0;
    std::int32_t connection = -1;  // the connection of the message, if it is one
  };
  struct PlannedFlow {
    const Way* way;
    double efficiency;
    std::int32_t connection;
  };

  const collective::Action& action_of(const AgentState& state) const {
    return actions_.actions[static_cast<std::size_t>(state.action)];
  }
  std::int64_t position(std::int32_t agent, std::int32_t slice, std::int32_t step) const;
  void foresee(double time, Happening what, std::int32_t index);
  void happen(const Event& event);
  void flow_ended(std::int32_t flow);
  void wake(std::vector<std::int32_t>& watchers);
  void wake_if(std::int32_t agent, Wait wait);
  void enter(std::int32_t agent);
  void try_advance(std::int32_t agent);
  bool pass(std::int32_t agent, AgentState& state, const collective::Action& action);
  bool packets_arrived(std::int32_t agent, const AgentState& state, const collective::Action& action);
  void begin(std::int32_t agent);
  void complete(std::int32_t agent);
  void write_packets(const collective::Cell& cell, std::int32_t count);
  std::int32_t parts_of(const collective::Action& action) const;
  std::string awaited(const AgentState& state, const collective::Action& action) const;

  const collective::Actions& actions_;
  const Ways& ways_;
  Network& network_;
  const RunParameters& parameters_;
  double slice_bytes_;
  std::int32_t slices_;
  Timeline timeline_;

  double now_ = 0;
  std::int64_t events_ = 0, order_ = 0;
  std::vector<AgentState> agents_;
  std::vector<std::int32_t> steps_;  // per agent: its last step + 1
  std::vector<ConnectionState> connections_;
  std::vector<CounterState> counters_;
  std::vector<std::vector<std::int32_t>> gathered_;  // agents at each barrier
  std::unordered_map<std::uint64_t, PacketState> packets_;
  std::vector<FlowUse> uses_;  // by flow
  std::vector<PlannedFlow> planned_;
  std::vector<Event> queue_;  // a heap
  std::vector<std::int32_t> ready_;
  std::vector<double> slice_ends_;
  std::vector<Stretch> stretches_;
};

}  // namespace weft::sim
