#include "weft/collectives/check/races.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "weft/collectives/check/cell_numbers.h"
#include "weft/collectives/check/deadlock.h"
#include "weft/collectives/check/order_queries.h"

namespace weft::collective {
namespace {

// Walks over the accesses and collects the order queries for those that conflict.
class Accesses {
 public:
  Accesses(const Actions& actions, const HappensBefore& graph, std::span<const std::int32_t> order)
      : graph_(graph), numbers_(actions), last_write_(numbers_.size(), -1), readers_(numbers_.size(), -1) {
    const auto count = static_cast<std::int32_t>(actions.actions.size());
    for (const std::int32_t node : order) {
      if (node >= count) continue;
      const Action& action = actions.actions[node];
      for (const Cell& cell : actions.sources(action))
        for (std::int32_t chunk = 0; chunk < action.count; ++chunk) read(numbers_(cell) + chunk, node);
      for (const Cell& cell : actions.targets(action))
        for (std::int32_t chunk = 0; chunk < action.count; ++chunk) write(numbers_(cell) + chunk, node);
    }
  }

  std::span<const OrderQuery> queries() const { return queries_; }

 private:
  struct Reader {
    std::int32_t node, next;
  };

  void ask(std::int32_t earlier, std::int32_t later) {
    if (graph_.thread[earlier] == graph_.thread[later]) return;
    const OrderQuery query{earlier, later};
    if (!trivially_ordered(graph_, query)) queries_.push_back(query);
  }

  void read(std::int32_t cell, std::int32_t node) {
    if (last_write_[cell] >= 0) ask(last_write_[cell], node);
    std::int32_t& first = readers_[cell];
    // A later read by the same thread covers the earlier one.
    if (first >= 0 && graph_.thread[pool_[first].node] == graph_.thread[node]) {
      pool_[first].node = node;
      return;
    }
    if (free_ < 0) {
      free_ = static_cast<std::int32_t>(pool_.size());
      pool_.push_back({-1, -1});
    }
    const std::int32_t reader = std::exchange(free_, pool_[free_].next);
    pool_[reader] = {node, first};
    first = reader;
  }

  void write(std::int32_t cell, std::int32_t node) {
    if (readers_[cell] < 0 && last_write_[cell] >= 0) ask(last_write_[cell], node);
    for (std::int32_t reader = std::exchange(readers_[cell], -1); reader >= 0;) {
      ask(pool_[reader].node, node);
      const std::int32_t next = std::exchange(pool_[reader].next, free_);
      free_ = std::exchange(reader, next);
    }
    last_write_[cell] = node;
  }

  const HappensBefore& graph_;
  const CellNumbers numbers_;
  std::vector<std::int32_t> last_write_;  // per cell; -1: none
  std::vector<std::int32_t> readers_;     // per cell, since the last write: the first in pool_
  std::vector<Reader> pool_;
  std::int32_t free_ = -1;
  std::vector<OrderQuery> queries_;
};

struct Meeting {
  Cell cell;
  bool earlier_writes, later_writes;
};

// The cell on which two actions conflict.
Meeting meeting(const Actions& actions, const Action& earlier, const Action& later) {
  const auto meet = [&](std::span<const Cell> some, std::span<const Cell> others) -> std::optional<Cell> {
    for (const Cell& one : some)
      for (const Cell& other : others)
        if (one.rank == other.rank && one.buffer == other.buffer && one.index < other.index + later.count &&
            other.index < one.index + earlier.count)
          return one.index < other.index ? other : one;
    return std::nullopt;
  };
  if (const auto cell = meet(actions.targets(earlier), actions.sources(later))) return {*cell, true, false};
  if (const auto cell = meet(actions.sources(earlier), actions.targets(later))) return {*cell, false, true};
  return {meet(actions.targets(earlier), actions.targets(later)).value_or(Cell{}), true, true};
}

std::string cell_text(const Cell& cell, std::int32_t rank) {
  return cell.rank == rank ? fmt::format("{}[{}]", name(cell.buffer), cell.index)
                           : fmt::format("{}[{}] of gpu {}", name(cell.buffer), cell.index, cell.rank);
}

}  // namespace

std::optional<Finding> find_race(const Actions& actions, const HappensBefore& graph,
                                 std::span<const std::int32_t> order) {
  const Accesses accesses(actions, graph, order);
  const std::int64_t found = find_unordered(graph, order, accesses.queries());
  if (found < 0) return std::nullopt;
  const OrderQuery& query = accesses.queries()[found];
  const Action &earlier = actions.actions[query.earlier], &later = actions.actions[query.later];
  const Meeting met = meeting(actions, earlier, later);
  const std::int32_t rank = actions.agents[later.agent].rank;
  return Finding{
      Verdict::race, where(actions, later),
      fmt::format("{} {} while {} {} it", met.later_writes ? "writes" : "reads", cell_text(met.cell, rank),
                  place(actions, earlier, rank), met.earlier_writes ? "writes" : "reads")};
}

std::optional<Finding> find_overlap(const Actions& whole) {
  for (const Action& action : whole.actions) {
    if (action.count == 1) continue;
    for (const Cell& source : whole.sources(action)) {
      for (const Cell& target : whole.targets(action)) {
        const std::int32_t apart = std::abs(source.index - target.index);
        if (source.rank != target.rank || source.buffer != target.buffer || apart == 0 ||
            apart >= action.count)
          continue;
        return Finding{Verdict::race, where(whole, action),
                       fmt::format("reads {0}[{1}..{2}) while it writes {0}[{3}..{4})", name(source.buffer),
                                   source.index, source.index + action.count, target.index,
                                   target.index + action.count)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace weft::collective
