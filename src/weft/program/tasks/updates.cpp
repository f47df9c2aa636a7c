#include "weft/program/tasks/updates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouping.h"

namespace weft::program {
namespace {

constexpr std::uint32_t kNoUnit = 0xffffffff;

bool meets(std::span<const Place> some, std::span<const Place> others) {
  return std::ranges::any_of(some, [&](const Place& one) {
    return std::ranges::any_of(others, [&](const Place& other) {
      return one.buffer == other.buffer && extent(one).overlaps(extent(other));
    });
  });
}

bool must_not_overtake(const Unit& one, const Unit& other) {
  return meets(one.writes, other.reads) || meets(one.writes, other.writes) || meets(one.reads, other.writes);
}

bool same_place(const Place& x, const Place& y) {
  return x.dtype == y.dtype && extent(x) == extent(y) && is_plain(x) && is_plain(y);
}

// Whether a unit only casts a dense tensor to another type.
bool only_casts(const Program& program, const Unit& unit) {
  const auto* const loop = std::get_if<RowLoop>(&unit.kernel);
  return loop != nullptr && unit.nodes.size() == 1 && loop->accumulators.empty() && unit.reads.size() == 1 &&
         unit.writes.size() == 1 && program.graph->node(unit.nodes.front()).op == &ops::cast() &&
         is_plain(unit.reads.front()) && is_plain(unit.writes.front());
}

bool is_narrow_float(plan::DType dtype) { return dtype == plan::DType::bf16 || dtype == plan::DType::f16; }

class Joining {
 public:
  Joining(Program& program, std::int64_t enough) : program_(program), units_(program.units), enough_(enough) {
    touching_.resize(program.buffers.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      for (const std::vector<Place>* places : {&units_[u].reads, &units_[u].writes})
        for (const Place& place : *places)
          if (std::vector<std::uint32_t>& all = touching_[place.buffer.value]; all.empty() || all.back() != u)
            all.push_back(u);
  }

  void run() {
    ready_.resize(units_.size());
    is_taken_.resize(units_.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      if (const auto* call = update_of(u)) take(u, *call);
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      for (auto& [key, unit] : waiting_)
        if (!unit.calls.empty() &&
            (unit.made.turn != units_[u].turn || (!is_taken_[u] && must_not_overtake(unit.made, units_[u]))))
          place(unit);
      if (!is_taken_[u]) placed_.push_back(std::move(units_[u]));
      for (Ready& one : ready_[u]) join(one);
    }
    for (auto& [key, unit] : waiting_) place(unit);
    program_.units = std::move(placed_);
  }

 private:
  // What updates of one launch have in common.
  struct Key {
    std::string_view op;
    std::vector<double> attributes;
    std::vector<plan::DType> dtypes;
    std::vector<std::int64_t> numbers;  // places of the scalar operands
    std::uint32_t exchange = kNoUnit;   // the one that reduces the gradient
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // An update and the units fused with it: the gradient's cast before it; the parameter's rounding
  // and the copies to kept values after it.
  struct Ready {
    std::vector<std::uint32_t> units;  // the update first
    OperatorCall call;
    Key key;
  };
  struct Waiting {
    Unit made;
    std::vector<OperatorCall> calls;
    std::int64_t bytes = 0;
  };

  const OperatorCall* update_of(std::uint32_t u) const {
    const auto* const call = std::get_if<OperatorCall>(&units_[u].kernel);
    if (call == nullptr || !is_optimizer(*program_.graph->node(call->node).op) || units_[u].unless)
      return nullptr;
    const auto plain = [](const Place& place) { return is_plain(place); };
    return std::ranges::all_of(call->operands, plain) && std::ranges::all_of(call->results, plain) ? call
                                                                                                   : nullptr;
  }

  void take(std::uint32_t u, const OperatorCall& call) {
    Ready alone{{u}, call, {}};
    read_narrow_gradient(alone);
    Ready whole = alone;
    round_parameter(whole);
    keep_in_place(whole);
    const std::uint32_t after = last_before(whole);
    const bool is_free = !is_needed_before(whole, after);
    Ready& taken = is_free ? whole : alone;
    taken.key = key_of(taken);
    for (const std::uint32_t one : taken.units) is_taken_[one] = true;
    ready_[is_free ? after : u].push_back(std::move(taken));
  }

  // Whether only these units access the buffer.
  bool is_of(const Ready& update, BufferId buffer, std::uint32_t and_unit) const {
    return std::ranges::all_of(touching_[buffer.value], [&](std::uint32_t u) {
      return u == and_unit || std::ranges::find(update.units, u) != update.units.end();
    });
  }

  bool may_go_along(const Ready& update, std::uint32_t u) const {
    return !is_taken_[u] && !units_[u].unless && units_[u].turn == units_[update.units.front()].turn;
  }

  void read_narrow_gradient(Ready& update) const {
    const std::uint32_t u = update.units.front();
    Place& gradient = update.call.operands[1];
    for (const std::uint32_t c : touching_[gradient.buffer.value]) {
      if (c >= u || !may_go_along(update, c) || !only_casts(program_, units_[c]) ||
          !same_place(units_[c].writes.front(), gradient) || !is_of(update, gradient.buffer, c))
        continue;
      const Place& narrow = units_[c].reads.front();
      const bool is_rewritten = std::ranges::any_of(touching_[narrow.buffer.value], [&](std::uint32_t other) {
        return other > c && other <= u && meets(units_[other].writes, {&narrow, 1});
      });
      if (!is_narrow_float(narrow.dtype) || is_rewritten) continue;
      gradient = narrow;
      update.units.push_back(c);
      return;
    }
  }

  void round_parameter(Ready& update) const {
    const std::uint32_t u = update.units.front();
    const Place master = update.call.results.front();
    for (const std::uint32_t c : touching_[master.buffer.value]) {
      if (c <= u || !may_go_along(update, c) || !only_casts(program_, units_[c]) ||
          !same_place(units_[c].reads.front(), master) || !is_narrow_float(units_[c].writes.front().dtype))
        continue;
      update.units.push_back(c);
      update.call.results.push_back(units_[c].writes.front());
      return;
    }
  }

  // Writes results that only these units read directly where a copy would put them.
  void keep_in_place(Ready& update) const {
    for (Place& result : update.call.results)
      for (const std::uint32_t c : touching_[result.buffer.value]) {
        const auto* const copy = std::get_if<Copy>(&units_[c].kernel);
        if (copy == nullptr || !may_go_along(update, c) || !same_place(copy->from, result) ||
            copy->to.dtype != result.dtype || !is_plain(copy->to) || !is_of(update, result.buffer, c))
          continue;
        update.units.push_back(c);
        result = copy->to;
        break;
      }
  }

  // The last unit that must see the old contents of what is overwritten.
  std::uint32_t last_before(const Ready& update) const {
    std::uint32_t after = update.units.front();
    for (const std::uint32_t u : update.units)
      for (const Place& place : units_[u].writes)
        for (const std::uint32_t other : touching_[place.buffer.value])
          if (other < u && std::ranges::find(update.units, other) == update.units.end())
            after = std::max(after, other);
    return after;
  }

  // Whether a unit after the update, up to `last`, must come after it.
  bool is_needed_before(const Ready& ready, std::uint32_t last) const {
    const std::uint32_t update = ready.units.front();
    for (const std::vector<Place>* places : {&units_[update].reads, &units_[update].writes})
      for (const Place& place : *places)
        for (const std::uint32_t u : touching_[place.buffer.value])
          if (u > update && u <= last && std::ranges::find(ready.units, u) == ready.units.end() &&
              must_not_overtake(units_[update], units_[u]))
            return true;
    return false;
  }

  Key key_of(const Ready& update) const {
    const OperatorCall& call = update.call;
    const plan::NodeView node = program_.graph->view(call.node);
    Key key{node.op().name(), {}, {}, {}, kNoUnit};
    for (std::size_t k = 0; k < node.op().attributes().size(); ++k) key.attributes.push_back(node.real(k));
    for (const Place& place : call.operands) key.dtypes.push_back(place.dtype);
    for (const Place& place : call.results) key.dtypes.push_back(place.dtype);
    for (std::size_t i = updated_tensors(node.op()); i < call.operands.size(); ++i) {
      key.numbers.push_back(static_cast<std::int64_t>(call.operands[i].buffer.value));
      key.numbers.push_back(call.operands[i].offset);
    }
    const Place& gradient = call.operands[1];
    for (const std::uint32_t u : touching_[gradient.buffer.value])
      if (u < update.units.front() && meets(units_[u].writes, {&gradient, 1}) &&
          std::holds_alternative<Exchange>(units_[u].kernel))
        key.exchange = u;
    return key;
  }

  void join(Ready& one) {
    Unit unit{.nodes = {}, .kernel = Copy{}, .reads = one.call.operands, .writes = one.call.results};
    for (auto& [key, other] : waiting_)
      if (must_not_overtake(other.made, unit)) place(other);
    Waiting& to = waiting_[one.key];
    to.made.turn = units_[one.units.front()].turn;
    const auto add = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    for (const std::uint32_t u : one.units) add(to.made.nodes, units_[u].nodes);
    add(to.made.reads, unit.reads);
    add(to.made.writes, unit.writes);
    for (const std::vector<Place>* places : {&unit.reads, &unit.writes})
      for (const Place& place : *places) to.bytes += extent(place).end - extent(place).begin;
    to.calls.push_back(std::move(one.call));
    if (to.bytes >= enough_) place(to);
  }

  void place(Waiting& waiting) {
    if (waiting.calls.empty()) return;
    waiting.made.kernel = Updates{std::move(waiting.calls)};
    placed_.push_back(std::move(waiting.made));
    waiting = {};
  }

  Program& program_;
  std::vector<Unit>& units_;
  const std::int64_t enough_;
  std::vector<std::vector<std::uint32_t>> touching_;  // by buffer: units, ascending
  std::vector<std::vector<Ready>> ready_;             // by the unit after which they may run
  std::vector<bool> is_taken_;                        // by unit: is an update or fused with one
  std::map<Key, Waiting> waiting_;
  std::vector<Unit> placed_;
};

}  // namespace

std::size_t updated_tensors(const plan::Operator& optimizer) {
  return &optimizer == &ops::sgd() ? 2 : &optimizer == &ops::momentum() ? 3 : 4;
}

void join_updates(Program& program, std::int64_t enough_bytes) { Joining(program, enough_bytes).run(); }

}  // namespace weft::program
