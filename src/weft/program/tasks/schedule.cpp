#include "weft/program/tasks/schedule.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "weft/program/tasks/grouping.h"

namespace weft::program {
namespace {

// Time is measured in operations that the rank could compute meanwhile.
using Work = double;

class Scheduler {
 public:
  Scheduler(Program& program, double flops_per_exchanged_byte)
      : program_(program),
        units_(program.units),
        flops_per_byte_(flops_per_exchanged_byte),
        writers_(program.buffers.size()),
        after_(units_.size()),
        waiting_(units_.size()),
        over_(units_.size()),
        unread_(program.buffers.size()) {
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      for (const Place& place : units_[u].writes) writers_[place.buffer.value].push_back({u, extent(place)});
    find_edges();
    find_fetches();
    find_priorities();
    hold_back();
    for (const Unit& unit : units_) {
      if (unit.turn >= left_.size()) left_.resize(unit.turn + 1);
      ++left_[unit.turn];
    }
  }

  Status run() {
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      if (waiting_[u] == 0) make_ready(u);
    while (const std::optional<std::uint32_t> next = choose()) place(*next);
    if (ordered_.size() < units_.size())
      return user_error("the plan cannot be ordered: next values overwrite each other's operands in a cycle",
                        "return a separate value as the next value of each state");
    std::vector<Unit> ordered;
    ordered.reserve(units_.size());
    for (const std::uint32_t u : ordered_) ordered.push_back(std::move(units_[u]));
    units_ = std::move(ordered);
    return {};
  }

 private:
  // A collective; these run in the same order on all ranks. Messages run as soon as they are ready.
  bool is_exchange(std::uint32_t u) const {
    const auto* const exchange = std::get_if<Exchange>(&units_[u].kernel);
    return exchange != nullptr && !plan::is_message(exchange->kind);
  }
  bool is_message(std::uint32_t u) const {
    return is(Exchange::Kind::send, u) || is(Exchange::Kind::receive, u);
  }
  bool is(Exchange::Kind kind, std::uint32_t u) const {
    const auto* const exchange = std::get_if<Exchange>(&units_[u].kernel);
    return exchange != nullptr && exchange->kind == kind;
  }

  bool is_source(BufferId buffer) const {
    const BufferRole role = program_.buffer(buffer).role;
    return is_persistent(role) && role != BufferRole::result;
  }

  void edge(std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    after_[from].push_back(to);
    ++waiting_[to];
  }

  // A unit and the part of a buffer that it reads or writes.
  struct Part {
    std::uint32_t unit;
    Extent extent;
  };

  void find_edges() {
    std::vector<std::vector<Part>> readers(program_.buffers.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      for (const Place& place : units_[u].reads) readers[place.buffer.value].push_back({u, extent(place)});
    for (std::size_t b = 0; b < writers_.size(); ++b)
      for (const Part& writer : writers_[b])
        for (const Part& reader : readers[b])
          if (meet(writer, reader.extent))
            is_source(BufferId(b)) ? edge(reader.unit, writer.unit) : edge(writer.unit, reader.unit);
  }

  // Whether the writer makes the part of a buffer that is read: parts may be made separately.
  bool meet(const Part& writer, const Extent& read) const {
    return writers_[read.buffer.value].size() == 1 || writer.extent.overlaps(read);
  }

  bool is_backward(std::uint32_t u) const {
    return !units_[u].nodes.empty() &&
           program_.graph->phase(units_[u].nodes.front()) == plan::Phase::backward;
  }

  // A valid order, close to the plan's.
  std::vector<std::uint32_t> runnable_order() const {
    std::vector<std::uint32_t> waiting = waiting_, order;
    Earliest<Priority> ready;
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      if (waiting[u] == 0) ready.push({priority_[u], u});
    while (!ready.empty()) {
      order.push_back(ready.top().second);
      ready.pop();
      for (const std::uint32_t next : after_[order.back()])
        if (--waiting[next] == 0) ready.push({priority_[next], next});
    }
    return order;
  }

  // Recomputation in the backward phase waits for the gradient that needs it. Units are visited in
  // a valid order, so these edges create no cycles.
  void hold_back() {
    std::optional<std::uint32_t> before;
    for (const std::uint32_t u : runnable_order()) {
      if (units_[u].nodes.empty() || is_exchange(u) || is_message(u)) continue;
      if (program_.graph->phase(units_[u].nodes.front()) == plan::Phase::update) continue;
      bool reads_forward = false, reads_backward = false;
      for (const Place& place : units_[u].reads)
        for (const Part& writer : writers_[place.buffer.value])
          if (!is_source(place.buffer)) (is_backward(writer.unit) ? reads_backward : reads_forward) = true;
      const bool could_always = is_backward(u) && reads_forward && !reads_backward;
      if (could_always && before) edge(*before, u);
      if (!could_always) before = u;
    }
  }

  // Chains the exchanges, and finds fetches: exchanges that read only sources, possibly through a
  // copy. That copy waits as well; if several fetches share it, it waits with the first. Reductions
  // of sources belong to the previous step and are needed at the end of this one, so they are not
  // fetches and start at once.
  void find_fetches() {
    is_fetch_.resize(units_.size());
    std::optional<std::uint32_t> last;
    std::vector<bool> has_turn(units_.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (!is_exchange(u)) continue;
      if (last) edge(*last, u);
      is_fetch_[u] =
          !is(Exchange::Kind::all_reduce, u) && !is(Exchange::Kind::reduce_scatter, u) &&
          !units_[u].reads.empty() && std::ranges::all_of(units_[u].reads, [&](const Place& place) {
            return is_source(place.buffer) ||
                   std::ranges::all_of(writers_[place.buffer.value],
                                       [&](const Part& writer) { return is_copy_of_source(writer.unit); });
          });
      if (is_fetch_[u]) {
        most_unread_ = std::max(most_unread_, kFetchedAhead * bytes_of(units_[u].writes));
        for (const Place& place : units_[u].reads) {
          if (is_source(place.buffer)) continue;
          for (const Part& copy : writers_[place.buffer.value]) {
            if (last && !has_turn[copy.unit]) edge(*last, copy.unit);
            has_turn[copy.unit] = true;
          }
        }
      }
      last = u;
    }
  }

  bool is_copy_of_source(std::uint32_t u) const {
    const auto* copy = std::get_if<Copy>(&units_[u].kernel);
    return copy != nullptr && is_source(copy->from.buffer);
  }

  // By unit: whether it is in the backward phase but reads only sources, so that it reduces values
  // of the previous step.
  std::vector<bool> of_step_before() const {
    std::vector<bool> found(units_.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      found[u] = (units_[u].nodes.empty() || is_backward(u)) && !units_[u].reads.empty() &&
                 std::ranges::all_of(units_[u].reads, [&](const Place& place) {
                   return is_source(place.buffer) ||
                          std::ranges::all_of(writers_[place.buffer.value],
                                              [&](const Part& writer) { return found[writer.unit]; });
                 });
    return found;
  }

  // Whether it can wait: its gradient is from the previous step, and may still be in transit.
  bool applies_late(std::uint32_t u, const std::vector<bool>& before) const {
    return std::ranges::any_of(units_[u].reads, [&](const Place& place) {
      return std::ranges::any_of(writers_[place.buffer.value], [&](const Part& writer) {
        return is_exchange(writer.unit) && before[writer.unit];
      });
    });
  }

  void find_priorities() {
    const std::vector<bool> before = of_step_before();
    std::uint32_t last_node = 0;
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (!units_[u].nodes.empty()) last_node = units_[u].nodes.back().value;
      const bool soon =
          units_[u].nodes.empty() || is_message(u) ||
          (is_optimizer(*program_.graph->node(units_[u].nodes[0]).op) && !applies_late(u, before));
      // A receive counts for the turn before its own, after ready units; a copy of a source is
      // always possible.
      const std::uint32_t ahead = is(Exchange::Kind::receive, u) && units_[u].turn > 0 ? 1 : 0;
      priority_.push_back({units_[u].turn - ahead, soon ? u : (std::uint64_t{last_node} + 1) << 32 | u});
    }
  }

  static std::int64_t bytes_of(std::span<const Place> places) {
    std::int64_t bytes = 0;
    for (const Place& place : places) bytes += place.elements() * plan::size_in_bytes(place.dtype);
    return bytes;
  }

  Work work_of(const Unit& unit) const {
    constexpr Work kFlopsPerMovedByte = 16;  // between a CPU's 5 and an accelerator's 100
    Work work = kFlopsPerMovedByte * static_cast<double>(bytes_of(unit.reads) + bytes_of(unit.writes));
    for (const plan::NodeId id : unit.nodes) {
      const plan::NodeView node = program_.graph->view(id);
      work += node.op().work(node).flops;
    }
    return work;
  }

  // -- choice of the next unit --------------------------------------------------------------------

  void make_ready(std::uint32_t u) {
    if (is_exchange(u)) {
      exchange_ = u;  // the others wait for it
      return;
    }
    Work when = 0;
    for (const Place& place : units_[u].reads)
      for (const Part& writer : writers_[place.buffer.value])
        if (over_[writer.unit] > when && meet(writer, extent(place))) when = over_[writer.unit];
    if (when > now_)
      held_.push({when, u});
    else
      ready_.push({priority_[u], u});
  }

  std::optional<std::uint32_t> choose() {
    const auto take_exchange = [&] { return std::exchange(exchange_, std::nullopt); };
    while (turn_ < left_.size() && left_[turn_] == 0) ++turn_;
    const auto is_due = [&] { return !ready_.empty() && ready_.top().first.first <= turn_; };
    if (exchange_ && units_[*exchange_].turn <= turn_ &&
        (!is_fetch_[*exchange_] || unread_bytes_ == 0 ||
         unread_bytes_ + bytes_of(units_[*exchange_].writes) <= most_unread_))
      return take_exchange();
    const auto release = [&] {
      for (; !held_.empty() && held_.top().first <= now_; held_.pop())
        ready_.push({priority_[held_.top().second], held_.top().second});
    };
    release();
    while (!is_due() && !held_.empty()) {
      now_ = held_.top().first;
      release();
    }
    if (!is_due()) return take_exchange();
    const std::uint32_t u = ready_.top().second;
    ready_.pop();
    return u;
  }

  void place(std::uint32_t u) {
    ordered_.push_back(u);
    const Unit& unit = units_[u];
    --left_[unit.turn];
    for (const Place& read : unit.reads) unread_bytes_ -= std::exchange(unread_[read.buffer.value], 0);
    if (is_exchange(u)) {
      const std::int64_t bytes = std::max(bytes_of(unit.reads), bytes_of(unit.writes));
      line_free_ = std::max(now_, line_free_) + flops_per_byte_ * static_cast<double>(bytes);
      over_[u] = line_free_;
      for (const Place& written : unit.writes)
        if (is_fetch_[u]) {
          unread_[written.buffer.value] += bytes_of(unit.writes);
          unread_bytes_ += bytes_of(unit.writes);
        }
    } else if (!is_message(u)) {
      now_ += work_of(unit);
    }
    for (const std::uint32_t next : after_[u])
      if (--waiting_[next] == 0) make_ready(next);
  }

  static constexpr std::int64_t kFetchedAhead = 2;  // in units of the largest fetch

  Program& program_;
  std::vector<Unit>& units_;
  const double flops_per_byte_;
  std::vector<std::vector<Part>> writers_;  // by buffer
  std::vector<std::vector<std::uint32_t>> after_;
  std::vector<std::uint32_t> waiting_;
  using Priority = std::pair<std::uint32_t, std::uint64_t>;  // the first turn it may run in, then its order
  std::vector<Priority> priority_;
  std::vector<std::uint32_t> left_;  // by turn: units not yet placed
  std::uint32_t turn_ = 0;           // the first turn with units left
  std::vector<bool> is_fetch_;       // an exchange of sources

  template <class Key>
  using Earliest = std::priority_queue<std::pair<Key, std::uint32_t>,
                                       std::vector<std::pair<Key, std::uint32_t>>, std::greater<>>;
  Earliest<Priority> ready_;               // by priority
  Earliest<Work> held_;                    // by the predicted end of the exchanges that they read
  std::optional<std::uint32_t> exchange_;  // the next one, when it is ready
  Work now_ = 0, line_free_ = 0;
  std::vector<Work> over_;            // by unit: predicted end of an exchange; 0: not started, or no exchange
  std::vector<std::int64_t> unread_;  // by buffer: fetched bytes that have not been read yet
  std::int64_t unread_bytes_ = 0, most_unread_ = 0;
  std::vector<std::uint32_t> ordered_;
};

}  // namespace

Status order_units(Program& program, double flops_per_exchanged_byte) {
  return Scheduler(program, flops_per_exchanged_byte).run();
}

}  // namespace weft::program
