#include "weft/collectives/check/fifo_slots.h"

#include <algorithm>
#include <utility>

namespace weft::collective {
namespace {

class Runner {
 public:
  Runner(const Actions& actions, HappensBefore& graph, std::int32_t slots)
      : actions_(actions),
        graph_(graph),
        fixed_(slots > 0),
        done_(graph.nodes()),
        node_waiters_(graph.nodes(), -1),
        slot_waiters_(actions.connections.size(), -1),
        counter_waiters_(actions.counters.size(), -1),
        next_waiter_(graph.threads.size(), -1),
        in_flight_(actions.connections.size()) {
    run_.slots = std::max(slots, 1);
    run_.order.reserve(graph.nodes());
    for (const Counter& counter : actions.counters) counters_.push_back(counter.initial);
    for (const HappensBefore::Thread& thread : graph.threads) run_.at.push_back(thread.first);
  }

  TrialRun go() && {
    for (std::size_t thread = 0; thread < graph_.threads.size(); ++thread)
      advance(static_cast<std::int32_t>(thread));
    do {
      while (!ready_.empty()) {
        now_.swap(ready_);
        for (const std::int32_t thread : now_) advance(thread);
        now_.clear();
      }
    } while (add_slot());
    run_.finished = static_cast<std::int32_t>(run_.order.size()) == graph_.nodes();
    return std::move(run_);
  }

 private:
  // A thread is in at most one list.
  void wait_in(std::int32_t& list, std::int32_t thread) {
    next_waiter_[thread] = list;
    list = thread;
  }

  void wake(std::int32_t& list) {
    for (std::int32_t thread = std::exchange(list, -1); thread >= 0; thread = next_waiter_[thread])
      ready_.push_back(thread);
  }

  bool add_slot() {
    if (fixed_) return false;
    for (const std::int32_t connection : slot_waits_) wake(slot_waiters_[connection]);
    slot_waits_.clear();
    if (ready_.empty()) return false;
    ++run_.slots;
    return true;
  }

  void advance(std::int32_t thread) {
    for (std::int32_t& node = run_.at[thread]; node < graph_.threads[thread].end; ++node) {
      for (const std::int32_t earlier : graph_.before(node)) {
        if (earlier == kNever) return;
        if (!done_[earlier]) return wait_in(node_waiters_[earlier], thread);
      }
      if (node < static_cast<std::int32_t>(actions_.actions.size()) && !act(actions_.actions[node], thread))
        return;
      finish(node);
    }
  }

  // Effects that no edge represents. False: the thread must wait.
  bool act(const Action& action, std::int32_t thread) {
    const bool counted = action.consume >= 0 && graph_.shared[action.consume];
    if (counted && counters_[action.consume] == 0) {
      wait_in(counter_waiters_[action.consume], thread);
      return false;
    }
    if (action.give >= 0) {
      if (in_flight_[action.give] >= run_.slots) {
        if (slot_waiters_[action.give] < 0) slot_waits_.push_back(action.give);
        wait_in(slot_waiters_[action.give], thread);
        return false;
      }
      ++in_flight_[action.give];
    }
    if (counted) --counters_[action.consume];
    if (action.take >= 0) {
      --in_flight_[action.take];
      wake(slot_waiters_[action.take]);
    }
    if (action.raise >= 0) {
      ++counters_[action.raise];
      wake(counter_waiters_[action.raise]);
    }
    return true;
  }

  void finish(std::int32_t node) {
    done_[node] = 1;
    run_.order.push_back(node);
    wake(node_waiters_[node]);
    if (graph_.first_writes.empty()) return;
    auto write = std::ranges::lower_bound(graph_.first_writes, node, {}, &HappensBefore::FirstWrite::writer);
    for (; write != graph_.first_writes.end() && write->writer == node; ++write) {
      if (done_[write->node]) continue;
      graph_.predecessors[graph_.first_before[write->node]] = node;
      ++run_.at[graph_.thread[write->node]];
      finish(write->node);
    }
  }

  const Actions& actions_;
  HappensBefore& graph_;
  const bool fixed_;
  TrialRun run_;
  std::vector<std::uint8_t> done_;
  std::vector<std::int32_t> node_waiters_, slot_waiters_, counter_waiters_, next_waiter_;
  std::vector<std::int32_t> in_flight_;  // messages per connection
  std::vector<std::int64_t> counters_;
  std::vector<std::int32_t> ready_, now_;  // threads
  std::vector<std::int32_t> slot_waits_;   // connections on which a thread waits or has waited for a slot
};

}  // namespace

TrialRun trial_run(const Actions& actions, HappensBefore& graph, std::int32_t slots) {
  return Runner(actions, graph, slots).go();
}

}  // namespace weft::collective
