#include <algorithm>
#include <limits>
#include <unordered_map>

#include "weft/rules/rule/affected_roots.h"
#include "weft/rules/rule/bind_match.h"
#include "weft/rules/rule/left_tests.h"
#include "weft/rules/rule/literals.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {

using plan::NodeId;
using plan::ValueId;

namespace {

// The most tests per root. Rules that people write need tens; a hostile one must not hang.
constexpr std::size_t kMostTests = std::size_t{1} << 20;

struct Tested {
  Test test;
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> accepts;  // rules whose tests have all passed here
};

}  // namespace

struct Automaton::State {
  explicit State(std::span<const Rule> all) : rules(all) {}

  std::span<const Rule> rules;
  std::vector<LeftTests> left;       // by rule; without its tests, which are in the tree
  std::vector<MatchBinder> binders;  // by rule
  std::vector<Tested> tree;
  // The first tests of a root: by its operator, or by operator class.
  std::unordered_map<const plan::Operator*, std::vector<std::uint32_t>> by_operator;
  std::vector<std::uint32_t> by_class;
  std::size_t one_by_one = 0;
  Climb climb;

  std::uint32_t follow(std::vector<std::uint32_t>& from, const Test& test) {
    for (const std::uint32_t next : from)
      if (tree[next].test == test) return next;
    from.push_back(static_cast<std::uint32_t>(tree.size()));
    tree.push_back({test, {}, {}});
    return from.back();
  }
};

Automaton::Automaton(std::span<const Rule> rules) : state_(std::make_unique<State>(rules)) {
  State& state = *state_;
  for (std::uint32_t r = 0; r < rules.size(); ++r) {
    LeftTests left = left_tests(rules[r]);
    state.binders.emplace_back(rules[r]);
    state.climb.add(left);
    state.one_by_one += left.tests.size();
    std::uint32_t at = 0;
    for (std::size_t t = 0; t < left.tests.size(); ++t) {
      const Test& test = left.tests[t];
      if (t == 0) {
        at = state.follow(test.kind == Test::Kind::op ? state.by_operator[test.op] : state.by_class, test);
        continue;
      }
      // follow() may reallocate the tree, so move the list out and back.
      std::vector<std::uint32_t> next = std::move(state.tree[at].next);
      const std::uint32_t to = state.follow(next, test);
      state.tree[at].next = std::move(next);
      at = to;
    }
    if (!left.tests.empty()) state.tree[at].accepts.push_back(r);
    left.tests.clear();
    state.left.push_back(std::move(left));
  }
}

Automaton::~Automaton() = default;
Automaton::Automaton(Automaton&&) noexcept = default;
Automaton& Automaton::operator=(Automaton&&) noexcept = default;

std::span<const Rule> Automaton::rules() const { return state_->rules; }
std::size_t Automaton::states() const { return state_->tree.size(); }
std::size_t Automaton::tests_one_by_one() const { return state_->one_by_one; }

// A depth-first traversal of the tree from one root. Each test undoes its bindings when it returns.
class Automaton::Walk {
 public:
  Walk(const State& state, const Draft& draft, const Placement& placement, std::vector<Match>& found,
       std::vector<Declined>* declined)
      : state_(state),
        draft_(draft),
        placement_(placement),
        found_(found),
        declined_(declined),
        counts_(state.rules.size(), 0) {}

  void from(NodeId root) {
    root_ = root;
    steps_ = 0;
    first_ = found_.size();
    nodes_ = {root};
    used_ = {0};
    values_.clear();
    const auto same = state_.by_operator.find(draft_.graph().node(root).op);
    if (same != state_.by_operator.end()) run(same->second);
    run(state_.by_class);
    for (std::size_t m = first_; m < found_.size(); ++m) counts_[found_[m].rule] = 0;
    std::sort(found_.begin() + static_cast<std::ptrdiff_t>(first_), found_.end());
  }

 private:
  void run(const std::vector<std::uint32_t>& tests) {
    for (const std::uint32_t at : tests) {
      if (++steps_ > kMostTests) return;
      try_test(state_.tree[at]);
    }
  }

  void pass(const Tested& at) {
    for (const std::uint32_t rule : at.accepts) accept(rule);
    run(at.next);
  }

  void try_test(const Tested& at) {
    const Test& test = at.test;
    switch (test.kind) {
      case Test::Kind::op:
        if (draft_.graph().node(nodes_[test.node]).op == test.op) enter(at);
        break;
      case Test::Kind::op_class:
        if (is_of_class(*draft_.graph().node(nodes_[test.node]).op, test.of)) enter(at);
        break;
      case Test::Kind::literal: try_literal(at); break;
      case Test::Kind::differ:
        if (nodes_[test.node] != nodes_[test.value]) pass(at);
        break;
      case Test::Kind::take: take(at); break;
      case Test::Kind::hold: hold(at); break;
      case Test::Kind::producer: {
        const plan::Value& value = draft_.graph().value(values_[test.value]);
        if (value.result == test.position) meet(at, value.producer);
        break;
      }
      case Test::Kind::reader:
        for (const NodeId reader : draft_.readers(values_[test.value])) meet(at, reader);
        break;
    }
  }

  void meet(const Tested& at, NodeId node) {
    nodes_.push_back(node);
    used_.push_back(0);
    pass(at);
    nodes_.pop_back();
    used_.pop_back();
  }

  void enter(const Tested& at) {
    const NodeId node = nodes_[at.test.node];
    if (draft_.inputs(node).size() != at.test.operands) return;
    if (draft_.graph().node(node).result_count < at.test.results) return;
    for (std::size_t k = 0; k < at.test.results; ++k) values_.push_back(draft_.graph().result(node, k));
    pass(at);
    values_.resize(values_.size() - at.test.results);
  }

  void try_literal(const Tested& at) {
    const plan::Node& node = draft_.graph().node(nodes_[at.test.node]);
    if (literal_holds(draft_.graph(), node, at.test.position, at.test.term)) return pass(at);
    if (declined_ == nullptr) return;
    // For `weft rules why`, continue with the remaining tests and decline at the end.
    const bool first = mismatch_.empty();
    if (first) mismatch_ = describe_mismatch(draft_.graph(), node, at.test.position, at.test.term);
    pass(at);
    if (first) mismatch_.clear();
  }

  void take_at(const Tested& at, std::size_t position) {
    values_.push_back(draft_.inputs(nodes_[at.test.node])[position]);
    pass(at);
    values_.pop_back();
  }

  void take(const Tested& at) {
    const Test& test = at.test;
    if (!test.commutes) return take_at(at, test.position);
    const std::span<const ValueId> operands = draft_.inputs(nodes_[test.node]);
    const std::uint64_t before = used_[test.node];
    for (std::size_t k = 0; k < operands.size(); ++k) {
      // Try a value that occurs twice among the operands only once.
      bool free = (before >> k & 1) == 0;
      for (std::size_t j = 0; j < k && free; ++j) free = (before >> j & 1) != 0 || operands[j] != operands[k];
      if (!free) continue;
      used_[test.node] = before | std::uint64_t{1} << k;
      take_at(at, k);
      used_[test.node] = before;
    }
  }

  void hold(const Tested& at) {
    const Test& test = at.test;
    const std::span<const ValueId> operands = draft_.inputs(nodes_[test.node]);
    if (!test.commutes) {
      if (operands[test.position] == values_[test.value]) pass(at);
      return;
    }
    const std::uint64_t before = used_[test.node];
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if ((before >> k & 1) != 0 || operands[k] != values_[test.value]) continue;
      used_[test.node] = before | std::uint64_t{1} << k;
      pass(at);
      used_[test.node] = before;
      return;
    }
  }

  void accept(std::uint32_t rule) {
    const LeftTests& left = state_.left[rule];
    match_.rule = rule;
    match_.root = root_;
    match_.nodes.clear();
    match_.values.clear();
    for (const std::uint16_t number : left.nodes) match_.nodes.push_back(nodes_[number]);
    for (const std::uint16_t number : left.values) match_.values.push_back(values_[number]);
    std::string because = mismatch_;
    if (because.empty() &&
        state_.binders[rule].bind(draft_, placement_, match_, declined_ != nullptr ? &because : nullptr)) {
      if (counts_[rule] < kMaxMatchesPerRoot) found_.push_back(match_);
      counts_[rule] =
          static_cast<std::uint16_t>(std::min<std::size_t>(counts_[rule] + 1u, kMaxMatchesPerRoot));
    } else if (declined_ != nullptr) {
      declined_->push_back({rule, match_.nodes, std::move(because)});
    }
  }

  const State& state_;
  const Draft& draft_;
  const Placement& placement_;
  std::vector<Match>& found_;
  std::vector<Declined>* declined_;
  std::vector<std::uint16_t> counts_;  // matches at this root, by rule
  NodeId root_;
  std::size_t steps_ = 0, first_ = 0;
  std::vector<NodeId> nodes_;
  std::vector<std::uint64_t> used_;  // by matched node: operands taken, as a bit mask
  std::vector<ValueId> values_;
  std::string mismatch_;  // of the first literal that failed, if requested
  Match match_;           // reused to avoid allocations
};

void Automaton::matches_at(const Draft& draft, NodeId root, std::vector<Match>& found,
                           std::vector<Declined>* declined, const Placement& placement) const {
  const std::size_t first = found.size(), first_declined = declined != nullptr ? declined->size() : 0;
  Walk(*state_, draft, placement, found, declined).from(root);
  if (declined == nullptr) return;
  // One reason per rule and nodes, and none if another operand order matches.
  std::vector<Declined> kept;
  for (std::size_t d = first_declined; d < declined->size(); ++d) {
    Declined& miss = (*declined)[d];
    const auto same = [&](const auto& other) { return other.rule == miss.rule && other.nodes == miss.nodes; };
    if (std::any_of(found.begin() + static_cast<std::ptrdiff_t>(first), found.end(), same)) continue;
    if (std::ranges::none_of(kept, same)) kept.push_back(std::move(miss));
  }
  declined->resize(first_declined);
  std::ranges::move(kept, std::back_inserter(*declined));
}

std::vector<Match> Automaton::all(const Draft& draft, const Placement& placement) const {
  std::vector<Match> found;
  Walk walk(*state_, draft, placement, found, nullptr);
  for (std::size_t n = 0; n < draft.graph().node_count(); ++n)
    if (draft.alive(NodeId(n))) walk.from(NodeId(n));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<NodeId> Automaton::affected(const Draft& draft, const Change& change) const {
  std::vector<NodeId> roots;
  for (const std::vector<NodeId>* nodes : {&change.added, &change.rewired})
    for (const NodeId node : *nodes) state_->climb.roots_of(draft, node, roots);
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

}  // namespace weft::rule
