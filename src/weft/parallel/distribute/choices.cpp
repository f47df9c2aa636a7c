#include "weft/parallel/distribute/choices.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/uses.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::uint8_t kFailed = 1, kHeld = 2, kBoth = kFailed | kHeld, kTied = 4;
constexpr std::uint8_t kAllPairs = 15;

bool is_one_of(const plan::Operator& op, std::initializer_list<const plan::Operator*> ops) {
  return std::ranges::find(ops, &op) != ops.end();
}

bool is_equality(const plan::Operator& op) { return is_one_of(op, {&ops::equal(), &ops::not_equal()}); }
bool is_logical(const plan::Operator& op) {
  return is_one_of(op, {&ops::logical_and(), &ops::logical_or(), &ops::logical_not()});
}
bool compares(const plan::Operator& op) {
  return is_equality(op) || is_one_of(op, {&ops::less(), &ops::less_equal(), &ops::greater(),
                                           &ops::greater_equal(), &ops::minimum(), &ops::maximum()});
}
bool takes_one(const plan::Operator& op) {
  return is_one_of(op, {&ops::minimum(), &ops::maximum(), &ops::relu(), &ops::abs()});
}
// Computed as less(b, a).
bool has_swapped_operands(const plan::Operator& op) {
  return is_one_of(op, {&ops::greater(), &ops::less_equal()});
}
bool compares_with_zero(const plan::Operator& op) { return is_one_of(op, {&ops::relu(), &ops::abs()}); }

// The joint outcomes of two decisions.
std::uint8_t crossed(std::uint8_t a, std::uint8_t b) {
  const auto sides = static_cast<std::uint8_t>(b & kBoth);
  std::uint8_t found = 0;
  if (a & kFailed) found |= sides;
  if (a & kHeld) found |= static_cast<std::uint8_t>(sides << 2);
  return found;
}

// The joint outcome of three scalar decisions; 0 if one has no outcome because its operands tie.
std::uint8_t combination(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
  int at = 0;
  for (const std::uint8_t sides : {a, b, c}) {
    if ((sides & kBoth) == 0) return 0;
    at = 2 * at + ((sides & kHeld) != 0 ? 1 : 0);
  }
  return static_cast<std::uint8_t>(1 << at);
}

}  // namespace

// Adds the deciding values to the plan as outputs, once per pair of compared numbers.
class Choices::Finder {
 public:
  Finder(const plan::Graph& graph, Choices& made, std::span<const Bound> bounds = {})
      : graph_(graph), made_(made), bounds_(bounds), hashes_(plan::value_hashes(graph)) {
    made_.asked_ = graph.clone();
    const std::vector<std::size_t> last = ops::last_uses(graph);
    depends_.resize(graph.value_count());
    needed_.resize(graph.node_count());
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      needed_[n] = ops::is_needed(node, last);
      const bool depends =
          ops::is_source(node.op()) ||
          std::ranges::any_of(node.node().inputs, [&](ValueId input) { return depends_[input.value]; });
      for (std::size_t k = 0; k < node.result_count(); ++k) depends_[node.result(k).value] = depends;
    }
  }

  Status run(const std::vector<bool>* own) {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (!needed_[n] || node.result_count() == 0 || !depends_[node.result(0).value]) continue;
      if (own != nullptr && !(*own)[n]) continue;
      const bool asks_equal = is_equality(node.op()) && plan::is_real(node.input_type(0).dtype);
      if (own != nullptr && node.result_type(0).rank() > 0 && !asks_equal) continue;
      if (compares(node.op())) {
        WEFT_TRY_STATUS(add_comparison(node, node.input(0), node.input(1)));
      } else if (compares_with_zero(node.op())) {
        WEFT_TRY_STATUS(add_comparison(node, node.input(0), {}));
      } else {
        add_flags(node);
      }
    }
    plan::Graph& asked = made_.asked_;
    for (Decision& decision : made_.decisions_) {
      decision.first_output = asked.outputs().size();
      for (const ValueId value : {decision.less, decision.equal})
        if (value.valid())
          asked.add_output(asked.symbol(fmt::format("choice {}", asked.outputs().size())), value);
    }
    made_.pairs_.resize(made_.decisions_.size() * made_.decisions_.size());
    made_.ties_.resize(made_.decisions_.size());
    find_threes();
    return {};
  }

 private:
  // All zeros count as the same number, whichever node makes them (no digest).
  using Numbers = std::pair<std::optional<Digest>, std::optional<Digest>>;
  enum class By : std::uint8_t { equality, order, taking_one };

  void find_threes() {
    constexpr std::size_t kMostSingle = 8;
    std::vector<std::size_t> single;
    for (std::size_t d = 0; d < made_.decisions_.size(); ++d)
      if (!made_.decisions_[d].is_tensor) single.push_back(d);
    if (single.size() > kMostSingle) single.resize(kMostSingle);
    for (const std::size_t a : single)
      for (const std::size_t b : single)
        for (const std::size_t c : single)
          if (a > b && b > c && made_.are_crossed(a, b) && made_.are_crossed(b, c) && made_.are_crossed(a, c))
            made_.threes_.push_back({a, b, c});
    made_.seen_threes_.resize(made_.threes_.size());
  }

  std::optional<Digest> digest_of(ValueId value) const {
    if (!value.valid()) return {};
    const NodeView maker = graph_.view(graph_.value(value).producer);
    if (&maker.op() == &ops::constant() && maker.real(0) == 0) return {};
    return hashes_[value.value];
  }

  // equal(minimum(a, b), b) repeats the decision of the minimum.
  bool repeats(const NodeView& node) const {
    if (!is_equality(node.op())) return false;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const NodeView maker = graph_.view(graph_.value(node.input(i)).producer);
      if (!is_one_of(maker.op(), {&ops::minimum(), &ops::maximum()})) continue;
      for (const ValueId operand : maker.node().inputs)
        if (hashes_[operand.value] == hashes_[node.input(1 - i).value]) return true;
    }
    return false;
  }

  Status add_comparison(const NodeView& node, ValueId a, ValueId b) {
    if (repeats(node)) return {};
    if (has_swapped_operands(node.op())) std::swap(a, b);
    const By by = is_equality(node.op()) ? By::equality : takes_one(node.op()) ? By::taking_one : By::order;
    Numbers numbers{digest_of(a), digest_of(b)}, sorted = numbers;
    if (sorted.second < sorted.first) std::swap(sorted.first, sorted.second);
    if (by != By::order) numbers = sorted;
    if (!known_.emplace(numbers, by).second) return {};
    plan::Graph& asked = made_.asked_;
    for (ValueId* const operand : {&a, &b}) {
      if (operand->valid()) continue;
      WEFT_TRY(zero, ops::add_constant(asked, 0, graph_.type(operand == &a ? b : a).dtype));
      *operand = zero;
    }
    Decision decision{.is_tensor = node.result_type(0).rank() > 0,
                      .takes_one = by == By::taking_one,
                      .text = describe(graph_, node.id()),
                      .numbers = numbers_.try_emplace(sorted, numbers_.size() + 1).first->second};
    if (by != By::equality) {
      WEFT_TRY(less, ops::add_pointwise(asked, ops::less(), {a, b}));
      decision.less = less;
    }
    WEFT_TRY(equal, ops::add_pointwise(asked, ops::equal(), {a, b}));
    decision.equal = equal;
    const ValueId flag = by == By::equality ? equal : decision.less;
    const std::size_t compared = decision.numbers;
    const bool is_single = !decision.is_tensor;
    made_.decisions_.push_back(std::move(decision));
    return is_single ? add_other_bounds(node, by, a, b, flag, compared) : Status();
  }

  // A zero added for the comparison has no node in the original plan.
  bool is_constant(ValueId value) const {
    return value.value >= graph_.value_count() ||
           graph_.node(graph_.value(value).producer).op == &ops::constant();
  }

  // The operand of mod if the value is an integer modulo a constant (a counter); otherwise invalid.
  ValueId counter_of(ValueId value) const {
    if (is_constant(value)) return {};
    const NodeView maker = graph_.view(graph_.value(value).producer);
    const bool counts = &maker.op() == &ops::mod() && plan::is_integer(maker.result_type(0).dtype) &&
                        is_constant(maker.input(1));
    return counts ? maker.input(0) : ValueId();
  }

  // Adds one decision per other bound: whether that bound would change the outcome.
  Status add_other_bounds(const NodeView& node, By by, ValueId a, ValueId b, ValueId flag,
                          std::size_t compared) {
    plan::Graph& asked = made_.asked_;
    const ValueId counter = by != By::equality      ? ValueId()
                            : counter_of(a).valid() ? counter_of(a)
                                                    : counter_of(b);
    const bool is_bounded = by != By::equality && is_constant(a) != is_constant(b);
    if (!counter.valid() && !is_bounded) return {};
    const ValueId number = counter.valid() ? counter : is_constant(a) ? b : a;
    const plan::DType dtype = asked.type(number).dtype;
    for (const Bound& bound : bounds_) {
      if (bound.is_whole != plan::is_integer(dtype)) continue;
      WEFT_TRY(other, ops::add_constant(asked, bound.number, dtype));
      ValueId again;
      if (counter.valid()) {
        WEFT_TRY(rest, ops::add_pointwise(asked, ops::mod(), {counter, other}));
        WEFT_TRY(made, ops::add_pointwise(asked, ops::equal(), {rest, counter_of(a).valid() ? b : a}));
        again = made;
      } else {
        WEFT_TRY(made, ops::add_pointwise(asked, ops::less(),
                                          {is_constant(a) ? other : a, is_constant(a) ? b : other}));
        again = made;
      }
      WEFT_TRY(differs, ops::add_pointwise(asked, ops::not_equal(), {flag, again}));
      made_.decisions_.push_back({.less = differs,
                                  .is_bound = true,
                                  .text = fmt::format("a difference between {} and {} for its bound",
                                                      describe(graph_, node.id()), bound.number),
                                  .numbers = compared});
    }
    return {};
  }

  // Adds flags that no comparison makes: inputs, and flags computed from integers.
  void add_flags(const NodeView& node) {
    if (&node.op() != &ops::select() && !is_logical(node.op())) return;
    const std::size_t flags = &node.op() == &ops::select() ? 1 : node.input_count();
    for (std::size_t i = 0; i < flags; ++i) {
      const ValueId flag = node.input(i);
      const NodeView maker = graph_.view(graph_.value(flag).producer);
      const bool follows = compares(maker.op()) || is_logical(maker.op()) ||
                           std::ranges::any_of(maker.node().inputs, [&](ValueId input) {
                             return graph_.type(input).dtype == plan::DType::boolean;
                           });
      if (follows || !depends_[flag.value] || !flags_.insert(hashes_[flag.value]).second) continue;
      made_.decisions_.push_back(
          {.less = flag,
           .is_tensor = graph_.type(flag).rank() > 0,
           .text = describe(graph_, maker.id()),
           .numbers = numbers_.try_emplace({hashes_[flag.value], {}}, numbers_.size() + 1).first->second});
    }
  }

  const plan::Graph& graph_;
  Choices& made_;
  const std::span<const Bound> bounds_;
  const std::vector<Digest> hashes_;    // by value
  std::vector<bool> depends_, needed_;  // by value: depends on a source; by node: is needed
  std::set<std::pair<Numbers, By>> known_;
  std::map<Numbers, std::size_t> numbers_;
  std::set<Digest> flags_;
};

std::vector<Choices::Bound> new_constants(const plan::Graph& original, const plan::Graph& graph) {
  constexpr std::size_t kMostBounds = 4;
  const auto constants_of = [](const plan::Graph& of) {
    std::set<std::pair<double, bool>> found;
    for (std::size_t n = 0; n < of.node_count(); ++n)
      if (const NodeView node = of.view(NodeId(n)); &node.op() == &ops::constant())
        found.emplace(node.real(0), plan::is_integer(node.result_type(0).dtype));
    return found;
  };
  const std::set<std::pair<double, bool>> known = constants_of(original);
  std::vector<Choices::Bound> found;
  for (const auto& constant : constants_of(graph))
    if (!known.contains(constant) && constant.first != 0 && found.size() < kMostBounds)
      found.push_back({constant.first, constant.second});
  return found;
}

Result<Choices> Choices::of(const plan::Graph& graph, std::span<const Bound> bounds) {
  Choices made;
  WEFT_TRY_STATUS(Finder(graph, made, bounds).run(nullptr));
  return made;
}

Result<Choices> Choices::of_own(const plan::Graph& graph, const std::vector<bool>& own) {
  Choices made;
  made.crossed_ = false;
  WEFT_TRY_STATUS(Finder(graph, made).run(&own));
  return made;
}

std::vector<std::uint8_t> Choices::sides(const Values& outputs) const {
  std::vector<std::uint8_t> found(decisions_.size());
  for (std::size_t d = 0; d < decisions_.size(); ++d) {
    const Decision& decision = decisions_[d];
    const auto& first = outputs[decision.first_output].data;
    for (std::size_t e = 0; e < first.size(); ++e) {
      const bool ties = decision.orders() && outputs[decision.first_output + 1].data[e] != ops::Field();
      if (ties) found[d] |= kTied;
      if (!ties || !decision.takes_one) found[d] |= first[e] != ops::Field() ? kHeld : kFailed;
    }
  }
  return found;
}

bool Choices::shows_more(const Values& outputs) const {
  const std::vector<std::uint8_t> now = sides(outputs);
  for (std::size_t a = 0; a < now.size(); ++a) {
    if ((now[a] & ~pair(a, a) & kBoth) != 0 || ((now[a] & kTied) != 0 && lacks_ties(a))) return true;
    for (std::size_t b = 0; b < a; ++b)
      if (are_crossed(a, b) && (crossed(now[a], now[b]) & ~pair(a, b)) != 0) return true;
  }
  for (std::size_t t = 0; t < threes_.size(); ++t) {
    const auto& [a, b, c] = threes_[t];
    if ((combination(now[a], now[b], now[c]) & ~seen_threes_[t]) != 0) return true;
  }
  return false;
}

void Choices::see(const Values& outputs) {
  if (all_crossed()) ++for_ties_;
  const std::vector<std::uint8_t>& now = last_ = sides(outputs);
  for (std::size_t a = 0; a < now.size(); ++a) {
    pair(a, a) |= now[a];
    if ((now[a] & kTied) != 0) ++ties_[a];
    for (std::size_t b = 0; b < a; ++b) pair(a, b) |= crossed(now[a], now[b]);
  }
  for (std::size_t t = 0; t < threes_.size(); ++t) {
    const auto& [a, b, c] = threes_[t];
    seen_threes_[t] |= combination(now[a], now[b], now[c]);
  }
}

void Choices::see_beside(const Values& outputs, const Choices& other) {
  see(outputs);
  if (other.last_.size() != other.decisions_.size()) return;
  others_.resize(other.decisions_.size());
  beside_.resize(decisions_.size() * others_.size());
  for (std::size_t b = 0; b < others_.size(); ++b) {
    const Decision& decision = other.decisions_[b];
    if (decision.is_tensor || decision.is_bound) continue;
    others_[b] = decision.text;
    for (std::size_t a = 0; a < decisions_.size(); ++a)
      if (!decisions_[a].is_tensor) beside_[a * others_.size() + b] |= crossed(last_[a], other.last_[b]);
  }
}

bool Choices::all_seen() const { return unseen().empty(); }

bool Choices::all_crossed() const {
  constexpr std::uint8_t kAllThrees = 255;
  return all_seen() &&
         std::ranges::all_of(seen_threes_, [](std::uint8_t seen) { return seen == kAllThrees; });
}

bool Choices::ties_seen() const {
  for (std::size_t d = 0; d < decisions_.size(); ++d)
    if (lacks_ties(d)) return false;
  return true;
}

void Choices::want_pairs_alone() {
  wants_ties_ = false;
  threes_.clear();
  seen_threes_.clear();
}

std::string Choices::unseen() const {
  for (std::size_t a = 0; a < decisions_.size(); ++a)
    if (const std::uint8_t seen = pair(a, a); (seen & kBoth) != kBoth)
      return fmt::format("{} was never seen to {}", decisions_[a].text, seen & kHeld ? "fail" : "hold");
  for (std::size_t a = 0; a < decisions_.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const std::uint8_t seen = pair(a, b);
      if (!are_crossed(a, b) || seen == kAllPairs) continue;
      const auto says = [](bool holds) { return holds ? "holding" : "failing"; };
      const int missing = std::countr_one(seen);
      return fmt::format("{} {} and {} {} were never seen together", decisions_[a].text, says(missing & 2),
                         decisions_[b].text, says(missing & 1));
    }
  for (std::size_t a = 0; a < decisions_.size(); ++a)
    for (std::size_t b = 0; b < others_.size(); ++b) {
      constexpr int kAlike = 9, kOpposite = 6;
      const int seen = beside_[a * others_.size() + b];
      const bool repeats = (seen & ~kAlike) == 0 || (seen & ~kOpposite) == 0;
      if (decisions_[a].is_tensor || others_[b].empty() || seen == kAllPairs || repeats) continue;
      return fmt::format("{} was not seen with both outcomes of {} of the model", decisions_[a].text,
                         others_[b]);
    }
  return {};
}

}  // namespace weft::distribute
