#include "weft/collectives/one_sided/one_sided_races.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/collectives/check/order_queries.h"

namespace weft::collective {
namespace {

using NodeKind = MemoryNode::Kind;

// Normalizes queries: a node with a single successor is ordered before others exactly as the
// successor.
class Reach {
 public:
  explicit Reach(const HappensBefore& graph) : graph_(graph), only_(graph.thread.size(), kNone) {
    for (std::int32_t node = 0; node < graph.nodes(); ++node)
      for (const std::int32_t earlier : graph.before(node))
        only_[earlier] = only_[earlier] == kNone ? node : kMany;
  }

  std::int32_t forward(std::int32_t node) const {
    const HappensBefore::Thread& thread = graph_.threads[graph_.thread[node]];
    return thread.end - thread.first == 1 && only_[node] >= 0 ? only_[node] : node;
  }
  std::int32_t back(std::int32_t node) const {
    const HappensBefore::Thread& thread = graph_.threads[graph_.thread[node]];
    const auto before = graph_.before(node);
    return thread.end - thread.first == 1 && before.size() == 1 ? before.front() : node;
  }

 private:
  static constexpr std::int32_t kNone = -1, kMany = -2;
  const HappensBefore& graph_;
  std::vector<std::int32_t> only_;
};

class OneSidedRaces {
 public:
  explicit OneSidedRaces(const MemoryOrder& memory)
      : memory_(memory), control_reach_(memory.control), data_reach_(memory.data) {
    sorted_ = memory.accesses;
    std::ranges::stable_sort(sorted_, [&](const MemoryAccess& a, const MemoryAccess& b) {
      return std::tuple(a.cell, memory_.position[a.node], a.writes) <
             std::tuple(b.cell, memory_.position[b.node], b.writes);
    });
  }

  std::optional<Finding> find() {
    for (std::size_t first = 0, end = 0; first < sorted_.size() && !finding_; first = end) {
      while (end < sorted_.size() && sorted_[end].cell == sorted_[first].cell) ++end;
      of_cell(std::span(sorted_).subspan(first, end - first));
    }
    if (finding_) return finding_;
    const auto control = first_unordered(memory_.control, control_queries_);
    if (control) return explain(*control, false);
    const auto data = first_unordered(memory_.data, data_queries_);
    if (data) return explain(*data, true);
    return std::nullopt;
  }

 private:
  struct Query {
    OrderQuery nodes;
    MemoryAccess earlier, later;
  };

  const MemoryNode& node(const MemoryAccess& access) const { return memory_.nodes[access.node]; }
  bool by_caller(const MemoryAccess& access) const { return node(access).kind == NodeKind::caller; }

  void of_cell(std::span<const MemoryAccess> accesses) {
    if (!check_packets(accesses)) return;
    const MemoryOrder::Place place = memory_.place(accesses.front().cell);
    const bool foreign =
        place.buffer != Buffer::scratch && std::ranges::any_of(accesses, [&](const MemoryAccess& a) {
          return node(a).where.rank != place.rank;
        });
    std::vector<MemoryAccess> all;
    if (foreign) {
      for (const std::int32_t caller : memory_.callers[place.rank])
        all.push_back({accesses.front().cell, 0, caller, true, false, false, false, -1, false});
      const std::size_t middle = all.size();
      all.insert(all.end(), accesses.begin(), accesses.end());
      std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(middle), all.end(),
                         [&](const MemoryAccess& a, const MemoryAccess& b) {
                           return memory_.position[a.node] < memory_.position[b.node];
                         });
      accesses = all;
    }
    const MemoryAccess* last = nullptr;
    std::vector<const MemoryAccess*> readers;
    for (const MemoryAccess& access : accesses) {
      if (!access.writes) {
        if (last != nullptr) ask(*last, access);
        readers.push_back(&access);
        continue;
      }
      for (const MemoryAccess* reader : readers) ask(*reader, access);
      if (readers.empty() && last != nullptr) ask(*last, access);
      // A packet that is rewritten with its own value still belongs to its first writer.
      if (access.copies && last != nullptr && last->packet && node(*last).run == node(access).run) continue;
      readers.clear();
      last = &access;
    }
  }

  // A packet has one value per run: a reader cannot tell two apart, because their flags are equal.
  bool check_packets(std::span<const MemoryAccess> accesses) {
    if (std::ranges::none_of(accesses, &MemoryAccess::packet)) return true;
    std::map<std::int32_t, const MemoryAccess*> writer;  // by run
    std::map<std::int32_t, const MemoryAccess*> plain;
    for (const MemoryAccess& access : accesses) {
      if (!access.writes) continue;
      if (!access.packet) plain[node(access).run] = &access;
      if (!access.packet || access.copies) continue;
      const auto [at, fresh] = writer.try_emplace(node(access).run, &access);
      if (fresh || at->second->node == access.node ||
          (access.source >= 0 && access.source == at->second->source))
        continue;
      refuse(Verdict::race, access,
             fmt::format("writes packets to {} that {} writes too: their reader cannot tell them apart",
                         text(access), text_of(*at->second, access)));
      return false;
    }
    for (const MemoryAccess& access : accesses) {
      if (access.writes || node(access).kind == NodeKind::caller) continue;
      const std::int32_t run = node(access).run;
      if (access.packet && !writer.contains(run)) {
        refuse(Verdict::deadlock, access,
               fmt::format("waits for a packet in {} that no rank writes as a packet", text(access)));
        return false;
      }
      if (!access.packet && writer.contains(run) && !plain.contains(run)) {
        refuse(Verdict::wrong_result, access,
               fmt::format("reads {} as data, but {} writes packets there, each with its flag", text(access),
                           text_of(*writer[run], access)));
        return false;
      }
    }
    return true;
  }

  void refuse(Verdict verdict, const MemoryAccess& access, std::string text) {
    finding_ = Finding{verdict, node(access).where, std::move(text)};
  }

  // Whether both accesses are by one block and each thread touches the same bytes in both.
  bool same_threads(const MemoryAccess& a, const MemoryAccess& b) const {
    const MemoryNode &one = node(a), &other = node(b);
    return a.in_packets && b.in_packets && a.packet == b.packet && a.base == b.base &&
           one.kind == NodeKind::step && other.kind == NodeKind::step && one.segment == other.segment &&
           one.run == other.run && one.where.rank == other.where.rank && one.where.block == other.where.block;
  }

  void ask(const MemoryAccess& earlier, const MemoryAccess& later) {
    if (earlier.node == later.node || same_threads(earlier, later)) return;
    const bool one_run = node(earlier).run == node(later).run;
    if (earlier.packet && later.packet && one_run) return;  // one value, ordered by its flag
    const bool visible = earlier.writes && !by_caller(earlier) && !earlier.switched;
    const HappensBefore& graph = visible ? memory_.data : memory_.control;
    const Reach& reach = visible ? data_reach_ : control_reach_;
    const std::int32_t from = reach.forward(earlier.node), to = reach.back(later.node);
    if (from == to || !(visible ? data_asked_ : control_asked_).insert(std::int64_t{from} << 32 | to).second)
      return;
    // An access that comes later in one run does not come earlier in every run.
    if (memory_.position[from] > memory_.position[to]) {
      auto& failure = visible ? data_failure_ : control_failure_;
      if (!failure || memory_.position[later.node] < memory_.position[failure->later.node])
        failure = Query{{from, to}, earlier, later};
      return;
    }
    if (graph.thread[from] == graph.thread[to] || trivially_ordered(graph, {from, to})) return;
    (visible ? data_queries_ : control_queries_).push_back({{from, to}, earlier, later});
  }

  std::optional<Query> first_unordered(const HappensBefore& graph, std::vector<Query>& queries) {
    const auto& failure = &graph == &memory_.data ? data_failure_ : control_failure_;
    if (failure) return failure;
    std::ranges::stable_sort(queries, {},
                             [&](const Query& query) { return memory_.position[query.nodes.later]; });
    std::vector<OrderQuery> nodes;
    nodes.reserve(queries.size());
    for (const Query& query : queries) nodes.push_back(query.nodes);
    const std::int64_t found = find_unordered(graph, memory_.order, nodes);
    if (found < 0) return std::nullopt;
    return queries[static_cast<std::size_t>(found)];
  }

  bool ordered(const HappensBefore& graph, std::int32_t earlier, std::int32_t later) const {
    if (memory_.position[earlier] > memory_.position[later]) return false;
    if (graph.thread[earlier] == graph.thread[later]) return true;
    const OrderQuery query{earlier, later};
    return find_unordered(graph, memory_.order, {&query, 1}) < 0;
  }

  std::string text(const MemoryAccess& access) const {
    const MemoryOrder::Place place = memory_.place(access.cell);
    const std::int32_t index = access.packet ? place.index / 2 : place.index;
    return place.rank == node(access).where.rank || by_caller(access)
               ? fmt::format("{}[{}]", name(place.buffer), index)
               : fmt::format("{}[{}] of gpu {}", name(place.buffer), index, place.rank);
  }
  std::string text_of(const MemoryAccess& access, const MemoryAccess& seen_from) const {
    const Where& where = node(access).where;
    return where.rank == node(seen_from).where.rank ? fmt::format("tb {} step {}", where.block, where.step)
                                                    : print(where);
  }

  Finding explain(const Query& query, bool visible) const {
    const MemoryAccess &earlier = query.earlier, &later = query.later;
    const MemoryOrder::Place place = memory_.place(later.cell);
    if (by_caller(earlier)) {
      const bool first = node(earlier).run == 0;
      return {Verdict::race, node(later).where,
              fmt::format("{} {} when gpu {} may not have started{}: an opening handshake is missing",
                          later.writes ? "writes" : "reads", text(later), place.rank,
                          first ? "" : " its next run")};
    }
    if (by_caller(later)) {
      const bool relaxed = visible && ordered(memory_.control, earlier.node, later.node);
      return {
          Verdict::race, node(earlier).where,
          fmt::format(
              "{} {}, and gpu {} may end {}", earlier.writes ? "writes" : "reads", text(earlier), place.rank,
              relaxed ? "without seeing it: only a relaxed signal, or none that covers it, comes between"
                      : missing(earlier, "before it is done: nothing it waits for comes after"))};
    }
    std::string told = fmt::format("{} {} while {} {} it", later.writes ? "writes" : "reads", text(later),
                                   text_of(earlier, later), earlier.writes ? "writes" : "reads");
    if (node(earlier).run != node(later).run) told += " in the previous run";
    return {Verdict::race, node(later).where, told + ": " + what_is_missing(earlier, later, visible)};
  }

  std::string missing(const MemoryAccess& earlier, std::string otherwise) const {
    if (node(earlier).kind != NodeKind::port_write) return otherwise;
    return "before it has arrived: the put is neither flushed nor signalled on its own channel before that";
  }

  std::string what_is_missing(const MemoryAccess& earlier, const MemoryAccess& later, bool visible) const {
    const MemoryNode &one = node(earlier), &other = node(later);
    if (visible && ordered(memory_.control, earlier.node, later.node))
      return "a relaxed signal or wait orders them, which does not make data visible";
    if (one.issue >= 0 && ordered(memory_.control, one.issue, later.node))
      return "the put is neither flushed nor signalled on its own channel in between";
    if (one.where.rank == other.where.rank && one.where.block == other.where.block &&
        one.segment == other.segment && one.run == other.run)
      return "no nop between them";
    if (one.where.rank == other.where.rank && one.where.block == other.where.block)
      return "nothing waits for it";
    if (one.where.rank == other.where.rank) return "no barrier or semaphore orders the threadblocks";
    return "no signal that is waited for, with nops around it, orders them";
  }

  const MemoryOrder& memory_;
  const Reach control_reach_, data_reach_;
  std::vector<MemoryAccess> sorted_;
  std::vector<Query> control_queries_, data_queries_;
  std::unordered_set<std::int64_t> control_asked_, data_asked_;  // many cells give the same query
  std::optional<Query> control_failure_, data_failure_;          // found without querying a graph
  std::optional<Finding> finding_;
};

}  // namespace

std::optional<Finding> find_race(const MemoryOrder& memory) {
  if (memory.finding) return memory.finding;
  return OneSidedRaces(memory).find();
}

}  // namespace weft::collective
