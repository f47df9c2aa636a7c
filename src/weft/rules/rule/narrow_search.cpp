#include "weft/rules/rule/narrow_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/rules/rule/rounded_constants.h"
#include "weft/rules/rule/stored_run.h"

namespace weft::rule {
namespace {

using ops::Rounded;
using plan::ValueId;

constexpr std::size_t kMostMargins = 24;

enum class SwitchKind : std::uint8_t {
  none,
  operands,  // changes branch where its operands are equal
  zero,      // changes branch where its operand is zero
  divisor,
  whole,  // at integers
  along   // where elements of its operand are equal
};

bool is_comparison(const plan::Operator& op) {
  const ops::Pointwise* row = ops::find_pointwise(op);
  return row != nullptr && row->gives_bool && row->arity == 2 && row->takes != ops::Elements::boolean;
}

SwitchKind switch_of(const plan::NodeView& node) {
  if (node.input_count() == 0 || node.input_type(0).dtype == plan::DType::boolean) return SwitchKind::none;
  const plan::Operator& op = node.op();
  if (is_comparison(op) || &op == &ops::maximum() || &op == &ops::minimum()) return SwitchKind::operands;
  if (!plan::is_real(node.input_type(0).dtype)) return SwitchKind::none;
  if (&op == &ops::div()) return SwitchKind::divisor;
  if (&op == &ops::cast())
    return plan::is_real(node.result_type(0).dtype) ? SwitchKind::none : SwitchKind::whole;
  if (&op == &ops::max_pool() || &op == &ops::top_k()) return SwitchKind::along;
  if (&op == &ops::reduce())
    return node.word(0) == "sum" || node.word(0) == "mean" ? SwitchKind::none : SwitchKind::along;
  const ops::Pointwise* row = ops::find_pointwise(op);
  const bool polynomial =
      &op == &ops::add() || &op == &ops::sub() || &op == &ops::mul() || &op == &ops::neg();
  return row != nullptr && row->arity <= 2 && !polynomial ? SwitchKind::zero : SwitchKind::none;
}

// A plan whose outputs are zero where a switch changes branch, and the kind of each switch.
struct Margins {
  plan::Graph graph;
  std::vector<SwitchKind> kinds;
  std::vector<bool> compares;
};

Margins margins_of(const plan::Graph& sides) {
  Margins margins{sides.clone(), {}, {}};
  plan::Graph& graph = margins.graph;
  graph.clear_outputs();
  const std::size_t count = graph.node_count();
  for (std::size_t id = 0; id < count; ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    const SwitchKind kind = switch_of(node);
    if (kind == SwitchKind::none) continue;
    const bool compares = is_comparison(node.op());
    ValueId argument = node.input(0);
    if (kind == SwitchKind::divisor) argument = node.input(1);
    if (kind == SwitchKind::operands) {
      const std::array<ValueId, 2> operands = {node.input(0), node.input(1)};
      const auto difference = graph.add_value(ops::sub(), operands);
      if (!difference.ok()) continue;
      argument = *difference;
    }
    graph.add_output(graph.symbol("margin"), argument);
    margins.kinds.push_back(kind);
    margins.compares.push_back(compares);
  }
  return margins;
}

// The same instance with comparisons that treat operands within this distance as equal.
RuleInstance with_ties(const RuleInstance& instance, double within) {
  RuleInstance tied;
  tied.bindings = instance.bindings;
  const plan::Graph& from = instance.judged_graph();
  plan::Graph& graph = tied.graph;
  plan::Transplant transplant(from, graph);
  std::vector<ValueId> made(from.value_count());
  const auto add = [&](const plan::Operator& op, std::vector<ValueId> operands) {
    return graph.add_value(op, operands).value();
  };
  const auto number = [&](double value, plan::DType dtype) {
    const std::array<plan::AttributeValue, 2> attributes = {value, dtype};
    return graph.add_value(ops::constant(), {}, attributes).value();
  };
  for (std::size_t id = 0; id < from.node_count(); ++id) {
    const plan::NodeView node = from.view(plan::NodeId(id));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(made[input.value]);
    if (is_comparison(node.op()) && plan::is_real(node.input_type(0).dtype)) {
      const plan::DType dtype = node.input_type(0).dtype;
      const ValueId apart = add(ops::sub(), inputs), zero = number(0, dtype);
      const ValueId meet = add(ops::less_equal(), {add(ops::abs(), {apart}), number(within, dtype)});
      inputs = {add(ops::select(), {meet, zero, apart}), zero};
    }
    const plan::NodeId copy = transplant.node(node.id(), inputs).value();
    for (std::size_t k = 0; k < node.result_count(); ++k) made[node.result(k).value] = graph.result(copy, k);
  }
  for (const plan::Output& output : from.outputs()) transplant.output(output, made[output.value.value]);
  return tied;
}

class NarrowSearch {
 public:
  NarrowSearch(const RuleInstance& instance, int evaluations, Random& random)
      : instance_(instance),
        margins_(margins_of(instance.judged_graph())),
        draws_(draws_for(instance)),
        left_(evaluations),
        random_(random) {
    for (std::size_t id = 0; id < instance.graph.node_count(); ++id) {
      const plan::NodeView node = instance.graph.view(plan::NodeId(id));
      if (&node.op() == &ops::input()) dtypes_.push_back(node.result_type(0).dtype);
    }
  }

  std::optional<RealRun> find() {
    constexpr std::array kKinds = {1, 5, 4, 3, 1, 7};  // kinds of starting values (real_draws.h)
    for (std::size_t start = 0; left_ > 0 && !found_ && start < 64; ++start) {
      draws_.begin(kKinds[start % kKinds.size()], random_);
      begin_ = draw_inputs(instance_, draws_, random_);
      met_.clear();
      const std::vector<std::size_t> order = margins_in_any_order();
      if (order.empty()) return std::nullopt;
      for (const std::size_t margin : order)
        if (left_ > 0 && !found_) follow(margin);
    }
    return std::move(found_);
  }

  // Integers among the inputs at which a margin crosses zero.
  std::vector<double> find_integer_switches() {
    std::vector<double> turns;
    for (std::size_t start = 0; left_ > 0 && start < 32; ++start) {
      draws_.begin(5, random_);
      begin_ = draw_inputs(instance_, draws_, random_);
      met_.clear();
      for (std::size_t input = 0; input < begin_.size(); ++input)
        for (Rounded& element : begin_[input].data)
          if (!plan::is_real(dtypes_[input])) element = {std::floor(std::exp2(30 * random_.uniform())), 0};
      for (const std::size_t margin : margins_in_any_order()) {
        if (left_ <= 0) break;
        RealInputs inputs = begin_;
        if (const auto where = meet(inputs, margin, /*whole=*/true)) turns.push_back(at(inputs, *where));
      }
    }
    return turns;
  }

 private:
  struct Coordinate {
    std::size_t input = 0, element = 0;

    friend bool operator==(Coordinate, Coordinate) = default;
  };

  std::vector<double> margins_at(const RealInputs& inputs) {
    --left_;
    std::vector<double> result;
    compared_.clear();
    const auto all = evaluate_all(margins_.graph, inputs, {});
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto& data = all[k].data;
      for (std::size_t i = 0; i < std::min<std::size_t>(data.size(), 4); ++i) {
        const double value = data[i].value;
        switch (margins_.kinds[k]) {
          case SwitchKind::whole: result.push_back(value - std::round(value)); break;
          case SwitchKind::along:
            if (i > 0) result.push_back(value - data[0].value);
            break;
          default: result.push_back(value);
        }
      }
      if (margins_.compares[k])
        for (const Rounded element : data) compared_.push_back(std::abs(element.value));
    }
    return result;
  }

  std::vector<std::size_t> margins_in_any_order() {
    std::vector<std::size_t> order(margins_at(begin_).size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random_.below(k)]);
    order.resize(std::min(order.size(), kMostMargins));
    return order;
  }

  double& at(RealInputs& inputs, Coordinate where) const {
    return inputs[where.input].data[where.element].value;
  }
  bool is_whole(Coordinate where) const { return !plan::is_real(dtypes_[where.input]); }

  // Rounds the value to the input's dtype.
  double fit(Coordinate where, double value) const {
    const plan::DType dtype = dtypes_[where.input];
    if (is_whole(where)) return std::nearbyint(value);
    return dtype == plan::DType::f64 ? value : round_to_dtype(dtype, value);
  }

  double margin_at(RealInputs& inputs, Coordinate where, double value, std::size_t margin) {
    at(inputs, where) = value;
    const std::vector<double> margins = margins_at(inputs);
    return margin < margins.size() ? margins[margin] : NAN;
  }

  // An input element on which the margin depends, from a few random ones. Prefers one that was not
  // already moved to another margin.
  std::optional<Coordinate> coordinate_of(const RealInputs& from, std::size_t margin, bool whole) {
    constexpr int kTries = 12;
    std::vector<Coordinate> all;
    for (std::size_t input = 0; input < from.size(); ++input)
      for (std::size_t i = 0; i < from[input].data.size(); ++i)
        if (dtypes_[input] != plan::DType::boolean && (!whole || !plan::is_real(dtypes_[input])))
          all.push_back({input, i});
    if (all.empty()) return std::nullopt;
    RealInputs inputs = from;
    const std::vector<double> margins = margins_at(inputs);
    if (margin >= margins.size()) return std::nullopt;
    std::optional<Coordinate> found;
    for (int k = 0; k < kTries; ++k) {
      const Coordinate where = all[random_.below(all.size())];
      const bool is_met = std::ranges::find(met_, where) != met_.end();
      if (is_met && found) continue;
      const double value = at(inputs, where);
      const double little = is_whole(where) ? 1 : 1e-3 * std::max(1.0, std::abs(value));
      const bool depends = margin_at(inputs, where, value + little, margin) != margins[margin];
      at(inputs, where) = value;
      if (!depends) continue;
      found = where;
      if (!is_met) break;
    }
    return found;
  }

  // Follows margins one after another: a narrow region of two inputs is the intersection of two
  // margins.
  void follow(std::size_t margin) {
    RealInputs inputs = begin_;
    const auto where = meet(inputs, margin, /*whole=*/false);
    if (!where) return;
    probe(inputs, *where);
    if (found_ || random_.below(2) == 0) return;
    begin_ = inputs;
    met_.push_back(*where);
  }

  // Moves input elements, one at a time, until the margin crosses zero or stops decreasing. Returns
  // the last one moved.
  std::optional<Coordinate> meet(RealInputs& inputs, std::size_t margin, bool whole) {
    constexpr int kTurns = 5;
    std::optional<Coordinate> moved;
    for (int turn = 0; turn < kTurns && left_ > 0; ++turn) {
      const auto where = coordinate_of(inputs, margin, whole);
      if (!where) break;
      moved = where;
      if (meet_along(inputs, *where, margin)) return moved;
    }
    return whole ? std::nullopt : moved;
  }

  // Newton's method, then bisection once the sign changes. Whether the margin is zero or changes
  // sign there.
  bool meet_along(RealInputs& inputs, Coordinate where, std::size_t margin) {
    double x = at(inputs, where), value = margin_at(inputs, where, x, margin);
    constexpr int kSteps = 40, kShorter = 4;
    const bool whole = is_whole(where);
    for (int step = 0; step < kSteps && left_ > 0 && value != 0 && std::isfinite(value); ++step) {
      const double scale = std::max(1.0, std::abs(x)), little = whole ? 1 : 1e-7 * scale;
      const double slope = (margin_at(inputs, where, x + little, margin) - value) / little;
      if (slope == 0 || !std::isfinite(slope)) break;
      double move = std::clamp(-value / slope, -4 * scale, 4 * scale), next = NAN;
      for (int shorter = 0; shorter < kShorter; ++shorter, move /= 4) {
        if (whole) move = std::abs(move) < 1 ? std::copysign(1, move) : std::nearbyint(move);
        next = margin_at(inputs, where, x + move, margin);
        if (std::signbit(next) != std::signbit(value) || std::abs(next) < std::abs(value)) break;
      }
      if (std::isfinite(next) && std::signbit(next) != std::signbit(value)) {
        at(inputs, where) = bisect(inputs, where, x, x + move, margin);
        return true;
      }
      if (!(std::abs(next) < std::abs(value))) break;
      x += move;
      value = next;
    }
    at(inputs, where) = x;
    return value == 0;
  }

  double bisect(RealInputs& inputs, Coordinate where, double a, double b, std::size_t margin) {
    const bool negative = std::signbit(margin_at(inputs, where, a, margin));
    constexpr int kHalvings = 60;
    for (int k = 0; k < kHalvings; ++k) {
      const double half = a + (b - a) / 2, middle = is_whole(where) ? std::floor(half) : half;
      if (middle == a || middle == b) break;
      (std::signbit(margin_at(inputs, where, middle, margin)) == negative ? a : b) = middle;
    }
    return b;
  }

  // Runs both sides at the zero, beside it, and with ties; elements moved to other margins before
  // are also tried at and beside their values.
  void probe(RealInputs& inputs, Coordinate where) {
    const double x = at(inputs, where);
    if (!std::isfinite(x)) return;
    std::vector<Coordinate> moved = met_;
    moved.push_back(where);
    RealInputs beside = inputs;
    const auto try_at = [&](double step) {
      for (const Coordinate each : moved) {
        const double from = at(inputs, each), scale = std::max(std::abs(from), 1e-3);
        const double other = each == where ? step : step * static_cast<double>(random_.between(-1, 1));
        at(beside, each) = fit(each, from + (is_whole(each) ? std::round(other * 0x1p24) : other * scale));
        if (!std::isfinite(at(beside, each))) return;
      }
      run(instance_, beside);
    };
    try_at(0);
    for (int bits = 1; bits <= 24 && !found_; ++bits)
      for (const double sign : {-1.0, 1.0}) try_at(sign * std::exp2(-bits));
    if (!found_) try_tie(inputs);
  }

  void try_tie(const RealInputs& inputs) {
    margins_at(inputs);
    if (compared_.empty() || instance_.distributed()) return;
    double scale = 1;
    for (const auto& tensor : inputs)
      for (const Rounded element : tensor.data) scale = std::max(scale, std::abs(element.value));
    // No difference may be close to the threshold for a tie.
    const double within = 0x1p-36 * scale;
    bool any = false;
    for (const double apart : compared_) {
      if (apart > within && apart < 0x1p16 * within) return;
      any = any || apart <= within;
    }
    if (any) run(with_ties(instance_, within), inputs);
  }

  void run(const RuleInstance& instance, const RealInputs& inputs) {
    if (found_) return;
    --left_;
    auto made = run_real(instance, inputs, random_);
    if (made.ok() && made->difference) found_ = std::move(*made);
  }

  const RuleInstance& instance_;
  Margins margins_;
  RealDraws draws_;
  int left_;  // remaining evaluations
  Random& random_;
  std::vector<plan::DType> dtypes_;  // of the inputs
  RealInputs begin_;
  std::vector<Coordinate> met_;   // elements moved to a margin, which stay there
  std::vector<double> compared_;  // distances between compared operands in the last evaluation
  std::optional<RealRun> found_;
};

}  // namespace

bool has_switches(const plan::Graph& graph) {
  for (std::size_t id = 0; id < graph.node_count(); ++id)
    if (switch_of(graph.view(plan::NodeId(id))) != SwitchKind::none) return true;
  return false;
}

std::optional<RealRun> find_narrow_difference(const RuleInstance& instance, int evaluations, Random& random) {
  if (instance.refusal) return std::nullopt;
  return NarrowSearch(instance, evaluations, random).find();
}

std::vector<double> find_integer_switches(const RuleInstance& instance, int evaluations, Random& random) {
  return NarrowSearch(instance, evaluations, random).find_integer_switches();
}

}  // namespace weft::rule
