#include "weft/rules/rule/row_limit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/evaluate_number.h"
#include "weft/rules/rule/guards.h"
#include "weft/rules/rule/narrow_search.h"
#include "weft/rules/rule/row_positions.h"
#include "weft/rules/rule/stored_run.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLastRow = std::int64_t{1} << 30;  // positions are i32
constexpr std::size_t kMostCounted = 3;                   // instances used
constexpr std::int64_t kFewestElements = 4;               // elements of their inputs
constexpr int kDrawsAtAWindow = 2, kDrawsUnderALimit = 24;
constexpr int kEvaluationsOfTurns = 1000;
constexpr int kDrawsToTell = 4;  // before a difference is attributed to the rows or not

class OffsetRows {
 public:
  OffsetRows(const Rule& rule, const RuleInstance& near, RuleInstance far, Random& random)
      : rule_(rule), near_(near), far_(std::move(far)), draws_(draws_for(near)), random_(random) {
    RowUses uses = row_uses(near.graph);
    rows_ = uses.largest;
    names_rows_ = std::move(uses.inputs);
    for (std::size_t id = 0, input = 0; id < near.graph.node_count(); ++id)
      if (const plan::NodeView node = near.graph.view(plan::NodeId(id)); &node.op() == &ops::input())
        counts_.push_back(names_rows_[input++] || plan::is_integer(node.result_type(0).dtype));
  }

  std::int64_t rows() const { return rows_; }
  const std::vector<double>& constants() const { return draws_.constants(); }
  std::vector<double> turns(int evaluations) const {
    return find_integer_switches(far_, evaluations, random_);
  }

  // Whether the sides agree on rows from `first` on; true if the rule's guard excludes so many
  // rows. If the sides also differ on the same numbers counted from 0, the rows are not the reason,
  // and other numbers are drawn.
  bool agree_from(std::int64_t first) {
    if (first < 0 || first > kLastRow || !may_begin_at(first)) return true;
    for (int draw = 0; draw < kDrawsToTell; ++draw) {
      const RealInputs inputs = draw_from(first);
      if (agree_on(inputs)) return true;
      if (agree_on(counted_from_zero(inputs, first))) return false;
    }
    return true;
  }

 private:
  RealInputs draw_from(std::int64_t first) {
    draws_.begin(turn_++, random_);
    draws_.count_from(first);
    RealInputs inputs = draw_inputs(far_, draws_, random_);
    inputs[0].data[0] = {static_cast<double>(first), 0};
    for (std::size_t input = 1; input < inputs.size(); ++input)
      for (ops::Rounded& element : inputs[input].data)
        if (names_rows_[input - 1] && random_.below(2) == 0)
          element = {static_cast<double>(first + random_.between(-1, rows_)), 0};
    return inputs;
  }

  // The same inputs, with the numbers that name rows of the window shifted to start at 0.
  RealInputs counted_from_zero(RealInputs inputs, std::int64_t first) const {
    const auto begin = static_cast<double>(first);
    inputs[0].data[0] = {0, 0};
    for (std::size_t input = 1; input < inputs.size(); ++input)
      for (ops::Rounded& element : inputs[input].data)
        if (counts_[input - 1] && element.value >= begin - 1 &&
            element.value <= begin + static_cast<double>(rows_))
          element = {element.value - begin, 0};
    return inputs;
  }

  bool agree_on(const RealInputs& inputs) {
    const auto run = run_real(far_, inputs, random_);
    if (!run.ok() || run->difference) return !run.ok();
    const StoredRun stored = run_stored(far_, inputs, Exponents::of_dtype, random_.next());
    if (stored.doubt && !has_cast(far_.graph)) return true;
    for (std::size_t k = 0; k < stored.left.size(); ++k) {
      const plan::DType dtype = far_.graph.type(far_.graph.outputs()[k].value).dtype;
      if (!names_alike(stored.left[k], stored.right[k], plan::is_real(dtype))) return false;
    }
    return true;
  }

  // Reading a wrong row gives an unrelated number. Small differences come from f32 rounding or
  // range.
  static bool names_alike(const ops::Tensor<ops::Rounded>& left, const ops::Tensor<ops::Rounded>& right,
                          bool real) {
    constexpr double kOfAnotherRow = 1e-2;
    for (std::size_t i = 0; i < left.data.size(); ++i) {
      const ops::Rounded a = left.data[i], b = right.data[i];
      const double apart = std::abs(a.value - b.value);
      if (!a.is_known() || !b.is_known() || apart <= a.error + b.error) continue;
      if (!real || apart > kOfAnotherRow * std::max(std::abs(a.value), std::abs(b.value))) return false;
    }
    return true;
  }

  // A guard that bounds a size bounds the window too. Equal sizes are also equal for the whole
  // tensor, except for a size fixed to a literal.
  bool may_begin_at(std::int64_t first) const {
    Place place = near_.place(rule_);
    place.further = first;
    return std::ranges::all_of(rule_.when, [&](const Condition& condition) {
      const bool states =
          condition.left.kind == Number::Kind::literal || condition.right.kind == Number::Kind::literal;
      switch (condition.kind) {
        case Condition::Kind::less:
        case Condition::Kind::less_equal: return holds(condition, place);
        case Condition::Kind::equal: return !states || holds(condition, place);
        default: return true;
      }
    });
  }

  const Rule& rule_;
  const RuleInstance& near_;
  RuleInstance far_;
  RealDraws draws_;
  Random& random_;
  std::int64_t rows_ = 1;
  std::vector<bool> names_rows_, counts_;  // by input of `near_`; counts_: its numbers may be rows
  int turn_ = 0;
};

std::vector<std::int64_t> windows_of(const OffsetRows& far, int windows, Random& random) {
  std::vector<std::int64_t> firsts;
  for (int power = 3; power <= 30; ++power) firsts.push_back((std::int64_t{1} << power) - far.rows() / 2);
  std::vector<double> named = far.constants();
  const std::vector<double> turns = far.turns(kEvaluationsOfTurns);
  named.insert(named.end(), turns.begin(), turns.end());
  for (const double each : named)
    if (each > 1 && each < static_cast<double>(kLastRow))
      firsts.push_back(std::llround(each) - random.between(0, far.rows()));
  for (int k = 0; k < windows; ++k)
    firsts.push_back(static_cast<std::int64_t>(std::exp2(3 + 27 * random.uniform())));
  std::ranges::sort(firsts);
  return firsts;
}

// Whether all bounds exceed 1: with a single row or class, a wrong row cannot be noticed.
bool spreads(const Rule& rule, const std::optional<std::vector<Number>>& bounds,
             const RuleInstance& instance) {
  return !bounds || std::ranges::all_of(*bounds, [&](const Number& bound) {
    return evaluate(bound, instance.place(rule)).value_or(0) > 1;
  });
}

}  // namespace

std::optional<std::int64_t> most_rows(const Rule& rule, std::span<const RuleInstance* const> instances,
                                      int windows, Random& random) {
  std::vector<OffsetRows> counted;
  bool casts_rows = false;
  const auto bounds = row_bounds(rule);
  const bool any_spread = std::ranges::any_of(
      instances, [&](const RuleInstance* instance) { return spreads(rule, bounds, *instance); });
  for (const RuleInstance* instance : instances) {
    if (counted.size() == kMostCounted) break;
    if (instance->elements < kFewestElements && instance != instances.back()) continue;
    if (any_spread && !spreads(rule, bounds, *instance)) continue;
    auto far = with_row_offset(*instance);
    if (!far) continue;
    casts_rows = casts_rows || has_cast(instance->graph);
    OffsetRows rows(rule, *instance, std::move(*far), random);
    // On one device, the sides of a rule about ranks may differ for other reasons.
    if (instance->distributed() && !(rows.agree_from(0) && rows.agree_from(0))) continue;
    counted.push_back(std::move(rows));
  }
  if (counted.empty()) return casts_rows ? std::optional<std::int64_t>(0) : std::nullopt;
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_that_differs = kNone;
  for (OffsetRows& far : counted) {
    for (const std::int64_t first : windows_of(far, windows, random)) {
      if (first >= first_that_differs) break;
      for (int draw = 0; draw < kDrawsAtAWindow; ++draw)
        if (!far.agree_from(first)) first_that_differs = std::min(first_that_differs, first + far.rows());
    }
  }
  if (first_that_differs == kNone) return std::nullopt;
  auto limit = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(first_that_differs)));
  const auto holds_below = [&] {
    for (OffsetRows& far : counted)
      for (int draw = 0; draw < kDrawsUnderALimit && limit > far.rows(); ++draw) {
        const std::int64_t last = limit - far.rows();
        if (!far.agree_from(draw % 2 == 0 ? last : random.between(0, last))) return false;
      }
    return true;
  };
  while (limit > 1 && !holds_below()) limit /= 2;
  return limit;
}

}  // namespace weft::rule
