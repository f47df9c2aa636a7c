#include "weft/collectives/check/deadlock.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/collectives/check/cell_numbers.h"

namespace weft::collective {
namespace {

constexpr std::size_t kPrintedWaits = 4;  // of a cycle are printed; the rest is counted

// The event that a stuck thread waits for.
struct Wait {
  enum class For : std::uint8_t { nothing, publication, message, counter, barrier, packet, slot };
  For what = For::nothing;
  std::int32_t node = kNever;  // the node that would end the wait
  std::int32_t cell = 0;       // packet
};

class Explanation {
 public:
  Explanation(const Actions& actions, const HappensBefore& graph, const TrialRun& run)
      : actions_(actions), graph_(graph), run_(run), numbers_(actions) {}

  Finding find() const {
    std::int32_t stuck = -1;
    for (std::int32_t thread = 0; thread < static_cast<std::int32_t>(graph_.threads.size()); ++thread) {
      if (!is_stuck(thread)) continue;
      if (stuck < 0) stuck = thread;
      if (!is_agent(thread)) continue;
      if (const Wait wait = wait_of(thread); wait.node == kNever) return never(at(thread), wait);
    }
    return cycle(stuck);
  }

 private:
  bool is_agent(std::int32_t thread) const {
    return thread < static_cast<std::int32_t>(actions_.agents.size());
  }
  bool is_stuck(std::int32_t thread) const { return run_.at[thread] < graph_.threads[thread].end; }
  bool is_done(std::int32_t node) const { return run_.at[graph_.thread[node]] > node; }
  const Action& at(std::int32_t thread) const { return actions_.actions[run_.at[thread]]; }

  // The first of the nodes that has not run.
  std::int32_t first_undone(std::span<const std::int32_t> nodes) const {
    const auto undone = std::ranges::find_if(nodes, [&](std::int32_t node) { return !is_done(node); });
    return undone == nodes.end() ? kNever : *undone;
  }

  // REQUIRES: `thread` is an agent and stuck.
  Wait wait_of(std::int32_t thread) const {
    using enum Wait::For;
    const Action& action = at(thread);
    if (action.wait_agent >= 0) {
      const std::int32_t node = publisher(actions_, action.wait_agent, action.wait_step);
      if (node == kNever || !is_done(node)) return {publication, node};
    }
    if (action.take >= 0) {
      const std::int32_t node =
          partner(run_.at[thread], graph_.uses.taking(action.take), graph_.uses.giving(action.take));
      if (node == kNever || !is_done(node)) return {message, node};
    }
    if (action.barrier >= 0)
      if (const auto wait = wait_at_barrier(thread, action.barrier)) return *wait;
    for (const Cell& source : actions_.sources(action))
      for (std::int32_t chunk = 0; source.packet && chunk < action.count; ++chunk)
        if (const auto wait = wait_for_packet(numbers_(source) + chunk)) return *wait;
    if (action.consume >= 0)
      if (const auto wait = wait_for_counter(thread, action.consume)) return *wait;
    if (action.give >= 0) return {slot, first_undone(graph_.uses.taking(action.give))};
    return {};
  }

  // The node at the other end of the connection that matches `node`.
  std::int32_t partner(std::int32_t node, std::span<const std::int32_t> own,
                       std::span<const std::int32_t> other) const {
    const auto k = static_cast<std::size_t>(std::ranges::lower_bound(own, node) - own.begin());
    return k < other.size() ? other[k] : kNever;
  }

  std::optional<Wait> wait_at_barrier(std::int32_t thread, std::int32_t barrier) const {
    std::int32_t round = 0;
    for (std::int32_t node = graph_.threads[thread].first; node < run_.at[thread]; ++node)
      round += actions_.actions[node].barrier == barrier;
    for (const std::int32_t member : actions_.barriers[barrier].members) {
      std::int32_t visits = 0, node = graph_.threads[member].first;
      for (; node < graph_.threads[member].end; ++node)
        if (actions_.actions[node].barrier == barrier && visits++ == round) break;
      if (node == graph_.threads[member].end) return Wait{Wait::For::barrier, kNever};
      if (run_.at[member] < node) return Wait{Wait::For::barrier, node};
    }
    return std::nullopt;
  }

  std::optional<Wait> wait_for_packet(std::int32_t cell) const {
    std::int32_t undone = kNever;
    for (std::size_t i = 0; i < actions_.actions.size(); ++i) {
      for (const Cell& target : actions_.targets(actions_.actions[i])) {
        if (cell < numbers_(target) || cell >= numbers_(target) + actions_.actions[i].count) continue;
        if (is_done(static_cast<std::int32_t>(i))) return std::nullopt;
        undone = static_cast<std::int32_t>(i);
      }
    }
    return Wait{Wait::For::packet, undone, cell};
  }

  std::optional<Wait> wait_for_counter(std::int32_t thread, std::int32_t counter) const {
    std::int64_t value = actions_.counters[counter].initial;
    std::int32_t undone = kNever;
    for (std::size_t i = 0; i < actions_.actions.size(); ++i) {
      const Action& action = actions_.actions[i];
      const bool done = is_done(static_cast<std::int32_t>(i));
      if (action.raise == counter && !done && undone == kNever && action.agent != thread)
        undone = static_cast<std::int32_t>(i);
      if (done) value += (action.raise == counter) - (action.consume == counter);
    }
    if (value > 0) return std::nullopt;
    return Wait{Wait::For::counter, undone};
  }

  Finding never(const Action& action, const Wait& wait) const {
    return {Verdict::deadlock, where(actions_, action), never_text(action, wait)};
  }

  std::string never_text(const Action& action, const Wait& wait) const {
    using enum Wait::For;
    switch (wait.what) {
      case nothing: return "can never run";
      case publication:
        return fmt::format("waits for tb {} step {}, which never publishes",
                           actions_.agents[action.wait_agent].block, action.wait_step);
      case message: {
        const Connection& connection = actions_.connections[action.take];
        const std::size_t sent = graph_.uses.giving(action.take).size();
        if (sent == 0)
          return fmt::format("waits for a message from gpu {} on channel {} that no rank sends",
                             connection.from, connection.channel);
        return fmt::format("waits for chunk {} from gpu {} on channel {}, which sends only {}", sent,
                           connection.from, connection.channel, sent);
      }
      case counter:
        return fmt::format("waits for {}, which no rank raises again",
                           actions_.counters[action.consume].name);
      case barrier:
        return fmt::format("waits at barrier {}, which not all threadblocks reach", action.barrier);
      case packet: {
        const Cell cell = numbers_.cell(wait.cell);
        return fmt::format("waits for a packet in {}[{}] that no rank writes", name(cell.buffer), cell.index);
      }
      case slot: {
        const Connection& connection = actions_.connections[action.give];
        return fmt::format("waits for room on channel {} to gpu {}, where no rank receives",
                           connection.channel, connection.to);
      }
    }
    return {};
  }

  std::string text(const Action& action, const Wait& wait) const {
    const Action& other = actions_.actions[wait.node];
    const std::string what = place(actions_, other, actions_.agents[action.agent].rank);
    using enum Wait::For;
    switch (wait.what) {
      case nothing:
      case publication: return "waits for " + what;
      case message: return "waits for a message of " + what;
      case counter:
        return fmt::format("waits for {}, raised by {}", actions_.counters[action.consume].name, what);
      case barrier: return fmt::format("waits at barrier {} for {}", action.barrier, what);
      case packet: return "waits for a packet of " + what;
      case slot: return "waits for a free slot, which is freed by " + what;
    }
    return {};
  }

  // Follows the waits from a stuck thread until a thread repeats.
  Finding cycle(std::int32_t thread) const {
    if (!is_agent(thread)) return {Verdict::deadlock, {}, "waits at a barrier forever"};
    std::vector<std::int32_t> path;
    std::vector<std::uint8_t> seen(graph_.threads.size());
    while (!seen[thread]) {
      seen[thread] = 1;
      path.push_back(thread);
      const Wait wait = wait_of(thread);
      if (wait.node == kNever) return never(at(thread), wait);
      thread = graph_.thread[wait.node];
    }
    path.erase(path.begin(), std::ranges::find(path, thread));
    std::rotate(path.begin(), std::ranges::min_element(path), path.end());

    std::string told;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (i == kPrintedWaits - 1 && path.size() > kPrintedWaits) {
        told += fmt::format(", and so on through {} threadblocks back to {}", path.size(),
                            place(actions_, at(path[0]), -1));
        break;
      }
      const Wait wait = wait_of(path[i]);
      if (i > 0) {
        const std::int32_t awaited = wait_of(path[i - 1]).node;
        told += actions_.actions[awaited].step == at(path[i]).step
                    ? ", which "
                    : fmt::format(", held up at step {}, which ", at(path[i]).step);
      }
      told += text(at(path[i]), wait);
    }
    return {Verdict::deadlock, where(actions_, at(path[0])), told};
  }

  const Actions& actions_;
  const HappensBefore& graph_;
  const TrialRun& run_;
  const CellNumbers numbers_;
};

std::string chunks(std::int32_t count) { return fmt::format("{} chunk{}", count, count == 1 ? "" : "s"); }

std::optional<Finding> mismatch_on(const Actions& whole, const Uses& uses, std::int32_t connection) {
  const auto gives = uses.giving(connection), takes = uses.taking(connection);
  for (std::size_t k = 0; k < gives.size() && k < takes.size(); ++k) {
    const Action &give = whole.actions[gives[k]], &take = whole.actions[takes[k]];
    if (give.count == take.count) continue;
    return Finding{
        Verdict::wrong_result, where(whole, take),
        fmt::format("receives {} from transfer {} of gpu {}, which carries {} ({})", chunks(take.count), k,
                    whole.connections[connection].from, chunks(give.count), place(whole, give, -1))};
  }
  return std::nullopt;
}

}  // namespace

Finding explain_deadlock(const Actions& actions, const HappensBefore& graph, const TrialRun& run) {
  return Explanation(actions, graph, run).find();
}

std::optional<Finding> find_unreceived(const Actions& actions, const Uses& uses) {
  for (std::size_t i = 0; i < actions.connections.size(); ++i) {
    const auto connection = static_cast<std::int32_t>(i);
    const auto gives = uses.giving(connection);
    const std::size_t taken = uses.taking(connection).size();
    if (gives.size() <= taken) continue;
    return Finding{Verdict::deadlock, where(actions, actions.actions[gives[taken]]),
                   fmt::format("sends a message to gpu {} on channel {} that no rank receives",
                               actions.connections[i].to, actions.connections[i].channel)};
  }
  return std::nullopt;
}

std::optional<Finding> find_mismatch(const Actions& whole, const Uses& uses, std::int32_t connection) {
  if (connection >= 0) return mismatch_on(whole, uses, connection);
  for (std::size_t i = 0; i < whole.connections.size(); ++i)
    if (auto finding = mismatch_on(whole, uses, static_cast<std::int32_t>(i))) return finding;
  return std::nullopt;
}

Where where(const Actions& actions, const Action& action) {
  const Agent& agent = actions.agents[action.agent];
  return {agent.rank, agent.block, action.step};
}

std::string place(const Actions& actions, const Action& action, std::int32_t rank) {
  const Agent& agent = actions.agents[action.agent];
  return agent.rank == rank ? fmt::format("tb {} step {}", agent.block, action.step)
                            : print(where(actions, action));
}

}  // namespace weft::collective
