#include "weft/collectives/check/happens_before.h"

#include <algorithm>
#include <numeric>

#include "weft/collectives/check/cell_numbers.h"

namespace weft::collective {
namespace {

// Lists the indices of the actions grouped by `of(action)`, in order within each group.
template <class Of>
void group(const std::vector<Action>& actions, std::size_t groups, Of of, std::vector<std::int32_t>& first,
           std::vector<std::int32_t>& members) {
  first.assign(groups + 1, 0);
  for (const Action& action : actions)
    if (of(action) >= 0) ++first[of(action) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  members.resize(first.back());
  std::vector<std::int32_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (of(actions[i]) >= 0) members[next[of(actions[i])]++] = static_cast<std::int32_t>(i);
}

// The cells that packets are read from, and their writers.
class PacketWriters {
 public:
  PacketWriters(const Actions& actions, const CellNumbers& numbers, bool any) {
    if (!any) return;
    std::vector<std::uint8_t> read(numbers.size());
    for (const Action& action : actions.actions)
      for (const Cell& cell : actions.sources(action))
        if (cell.packet) std::fill_n(read.begin() + numbers(cell), action.count, std::uint8_t{1});
    for (std::size_t i = 0; i < actions.actions.size(); ++i) {
      const Action& action = actions.actions[i];
      for (const Cell& cell : actions.targets(action))
        for (std::int32_t chunk = 0; chunk < action.count; ++chunk)
          if (read[numbers(cell) + chunk])
            writes_.push_back({numbers(cell) + chunk, static_cast<std::int32_t>(i)});
    }
    std::ranges::stable_sort(writes_, {}, &Write::cell);
  }

  struct Write {
    std::int32_t cell, action;
  };

  std::span<const Write> of(std::int32_t cell) const {
    return std::span(std::ranges::lower_bound(writes_, cell, {}, &Write::cell),
                     std::ranges::upper_bound(writes_, cell, {}, &Write::cell));
  }

 private:
  std::vector<Write> writes_;
};

class Builder {
 public:
  explicit Builder(const Actions& actions) : actions_(actions) {
    graph_.uses = uses_of_connections(actions);
    group(
        actions.actions, actions.counters.size(), [](const Action& action) { return action.raise; },
        first_raise_, raises_);
    group(
        actions.actions, actions.counters.size(), [](const Action& action) { return action.consume; },
        first_consume_, consumes_);
    share_counters();
    add_threads();
    find_publishers();
    add_edges();
  }

  HappensBefore take() && { return std::move(graph_); }

 private:
  std::span<const std::int32_t> raises(std::int32_t counter) const {
    return std::span(raises_).subspan(first_raise_[counter],
                                      first_raise_[counter + 1] - first_raise_[counter]);
  }

  void share_counters() {
    const auto several = [&](const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& members,
                             std::size_t counter) {
      for (std::int32_t i = first[counter] + 1; i < first[counter + 1]; ++i)
        if (actions_.actions[members[i]].agent != actions_.actions[members[i - 1]].agent) return true;
      return false;
    };
    for (std::size_t counter = 0; counter < actions_.counters.size(); ++counter)
      graph_.shared.push_back(several(first_raise_, raises_, counter) ||
                              several(first_consume_, consumes_, counter));
  }

  void add_thread(std::int32_t rank, std::int32_t nodes) {
    const auto first = static_cast<std::int32_t>(graph_.thread.size());
    graph_.thread.insert(graph_.thread.end(), nodes, static_cast<std::int32_t>(graph_.threads.size()));
    graph_.threads.push_back({rank, first, first + nodes});
  }

  void add_threads() {
    graph_.thread.reserve(actions_.actions.size());
    for (const Agent& agent : actions_.agents) add_thread(agent.rank, agent.end - agent.first);
    // arrivals_[barrier][member]: the member's actions at that barrier.
    for (const Barrier& barrier : actions_.barriers) {
      const auto number = static_cast<std::int32_t>(arrivals_.size());
      auto& arrivals = arrivals_.emplace_back();
      std::size_t rounds = 0;
      for (const std::int32_t member : barrier.members) {
        std::vector<std::int32_t>& own = arrivals.emplace_back();
        for (std::int32_t i = actions_.agents[member].first; i < actions_.agents[member].end; ++i)
          if (actions_.actions[i].barrier == number) own.push_back(i);
        rounds = std::max(rounds, own.size());
      }
      add_thread(barrier.rank, static_cast<std::int32_t>(rounds));
    }
  }

  // publisher_[i]: the first publishing action of the same agent from i on.
  void find_publishers() {
    if (std::ranges::none_of(actions_.actions, [](const Action& action) { return action.wait_agent >= 0; }))
      return;
    publisher_.resize(actions_.actions.size());
    for (const Agent& agent : actions_.agents) {
      std::int32_t next = kNever;
      for (std::int32_t i = agent.end - 1; i >= agent.first; --i) {
        if (actions_.actions[i].publishes) next = i;
        publisher_[i] = next;
      }
    }
  }

  void add_edges() {
    const bool packets = std::ranges::any_of(actions_.cells, &Cell::packet);
    const CellNumbers numbers(actions_);
    const PacketWriters writers(actions_, numbers, packets);
    std::vector<std::int32_t> taken(actions_.connections.size());
    std::vector<std::int32_t> consumed;  // per counter, by this agent
    std::vector<std::int32_t> arrived(actions_.barriers.size());
    graph_.first_before.reserve(graph_.thread.size() + 1);
    graph_.predecessors.reserve(actions_.actions.size());
    for (const Agent& agent : actions_.agents) {
      if (!actions_.counters.empty()) consumed.assign(actions_.counters.size(), 0);
      if (!actions_.barriers.empty()) arrived.assign(actions_.barriers.size(), 0);
      for (std::int32_t i = agent.first; i < agent.end; ++i) {
        const Action& action = actions_.actions[i];
        begin_node();
        if (action.wait_agent >= 0) add(published(action.wait_agent, action.wait_step));
        if (action.take >= 0) {
          const auto giving = graph_.uses.giving(action.take);
          const auto k = static_cast<std::size_t>(taken[action.take]++);
          add(k < giving.size() ? giving[k] : kNever);
        }
        if (action.consume >= 0) add_raises(action.consume, ++consumed[action.consume]);
        if (action.barrier >= 0) add(round(action.barrier, arrived[action.barrier]++));
        if (packets) add_packets(action, writers, numbers);
      }
    }
    for (std::size_t barrier = 0; barrier < arrivals_.size(); ++barrier) add_rounds(barrier);
    for (std::size_t i = 0; i < several_.size(); ++i) {
      begin_node();
      add(kNever);  // until the trial run determines it
    }
    graph_.first_before.push_back(static_cast<std::int32_t>(graph_.predecessors.size()));
    std::ranges::sort(graph_.first_writes, {}, &HappensBefore::FirstWrite::writer);
  }

  void begin_node() { graph_.first_before.push_back(static_cast<std::int32_t>(graph_.predecessors.size())); }
  void add(std::int32_t node) { graph_.predecessors.push_back(node); }

  std::int32_t published(std::int32_t agent, std::int32_t step) const {
    const auto first = actions_.actions.begin() + actions_.agents[agent].first,
               end = actions_.actions.begin() + actions_.agents[agent].end;
    const auto at = std::ranges::lower_bound(first, end, step, {}, &Action::step);
    return at == end ? kNever : publisher_[at - actions_.actions.begin()];
  }

  std::int32_t round(std::int32_t barrier, std::int32_t times) const {
    const HappensBefore::Thread& rounds = graph_.threads[actions_.agents.size() + barrier];
    return times < rounds.end - rounds.first ? rounds.first + times : kNever;
  }

  void add_raises(std::int32_t counter, std::int32_t times) {
    const auto all = raises(counter);
    const std::int64_t needed = std::int64_t{times} - actions_.counters[counter].initial;
    if (needed > static_cast<std::int64_t>(all.size())) return add(kNever);
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      while (end < all.size() && actions_.actions[all[end]].agent == actions_.actions[all[first]].agent)
        ++end;
      const std::int64_t others = static_cast<std::int64_t>(all.size() - (end - first));
      if (needed > others) add(all[first + needed - others - 1]);
    }
  }

  void add_packets(const Action& action, const PacketWriters& writers, const CellNumbers& numbers) {
    for (const Cell& cell : actions_.sources(action)) {
      if (!cell.packet) continue;
      for (std::int32_t chunk = 0; chunk < action.count; ++chunk) {
        const std::int32_t number = numbers(cell) + chunk;
        const auto writes = writers.of(number);
        const auto agent = [&](const PacketWriters::Write& write) {
          return actions_.actions[write.action].agent;
        };
        if (writes.empty()) {
          add(kNever);
        } else if (agent(writes.front()) == agent(writes.back())) {
          add(writes.front().action);
        } else {
          add(first_write(number, cell.rank, writes));
        }
      }
    }
  }

  std::int32_t first_write(std::int32_t cell, std::int32_t rank,
                           std::span<const PacketWriters::Write> writes) {
    const auto at = std::ranges::lower_bound(several_, cell, {}, &PacketWriters::Write::cell);
    if (at != several_.end() && at->cell == cell) return at->action;
    const std::int32_t node = graph_.nodes();
    several_.insert(at, {cell, node});
    add_thread(rank, 1);
    for (const PacketWriters::Write& write : writes) graph_.first_writes.push_back({write.action, node});
    return node;
  }

  void add_rounds(std::size_t barrier) {
    const HappensBefore::Thread& thread = graph_.threads[actions_.agents.size() + barrier];
    for (std::int32_t round = 0; round < thread.end - thread.first; ++round) {
      begin_node();
      for (const std::vector<std::int32_t>& own : arrivals_[barrier]) {
        if (round >= static_cast<std::int32_t>(own.size())) {
          add(kNever);
        } else if (const std::int32_t action = own[round];
                   action > actions_.agents[actions_.actions[action].agent].first) {
          add(action - 1);
        }
      }
    }
  }

  const Actions& actions_;
  HappensBefore graph_;
  std::vector<std::int32_t> first_raise_, raises_, first_consume_, consumes_;
  std::vector<std::vector<std::vector<std::int32_t>>> arrivals_;
  std::vector<std::int32_t> publisher_;
  std::vector<PacketWriters::Write> several_;  // cells with several writing agents, and their nodes
};

}  // namespace

Uses uses_of_connections(const Actions& actions) {
  Uses uses;
  group(
      actions.actions, actions.connections.size(), [](const Action& action) { return action.give; },
      uses.first_send, uses.gives);
  group(
      actions.actions, actions.connections.size(), [](const Action& action) { return action.take; },
      uses.first_receive, uses.takes);
  return uses;
}

HappensBefore happens_before(const Actions& actions) { return Builder(actions).take(); }

std::int32_t publisher(const Actions& actions, std::int32_t agent, std::int32_t step) {
  for (std::int32_t i = actions.agents[agent].first; i < actions.agents[agent].end; ++i)
    if (actions.actions[i].publishes && actions.actions[i].step >= step) return i;
  return kNever;
}

}  // namespace weft::collective
