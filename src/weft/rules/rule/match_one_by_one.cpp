// Finds a rule's matches by brute force: assigns a node of the plan to each node of the left side
// in all possible ways. Shares with the automaton only the checks after the structure has matched.
#include <algorithm>
#include <numeric>

#include "weft/rules/rule/bind_match.h"
#include "weft/rules/rule/left_tests.h"
#include "weft/rules/rule/literals.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {
namespace {

using plan::NodeId;
using plan::ValueId;

class Finder {
 public:
  Finder(const Draft& draft, const Rule& rule, std::uint32_t number, const Placement& placement,
         std::vector<Match>& found)
      : draft_(draft),
        graph_(draft.graph()),
        rule_(rule),
        binder_(rule),
        number_(number),
        placement_(placement),
        found_(found),
        nodes_(rule.left.nodes.size()),
        values_(rule.left.values) {}

  void find() {
    const std::size_t root = root_of(rule_);
    if (root == rule_.left.nodes.size() || rule_.left.values > kMaxLeftValues) return;
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      root_ = NodeId(n);
      if (draft_.alive(root_)) assign(root, root_);
    }
  }

 private:
  // Tries all candidates for the next node of the left side that is connected to an assigned one.
  void extend() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].valid()) continue;
      const PatternNode& node = rule_.left.nodes[n];
      for (std::size_t k = 0; k < node.results; ++k)
        if (const ValueId result = values_[node.first_result + k]; result.valid())
          return assign(n, graph_.value(result).producer);
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].valid()) continue;
      for (const std::uint16_t operand : rule_.left.nodes[n].operands) {
        if (!values_[operand].valid()) continue;
        for (const NodeId reader : draft_.readers(values_[operand])) assign(n, reader);
        return;
      }
    }
    if (std::ranges::all_of(nodes_, &NodeId::valid) && std::ranges::all_of(values_, &ValueId::valid)) judge();
  }

  void assign(std::size_t n, NodeId node) {
    const PatternNode& pattern = rule_.left.nodes[n];
    const plan::Operator& op = *graph_.node(node).op;
    if (pattern.op != nullptr ? pattern.op != &op
                              : !is_of_class(op, rule_.operators[pattern.operator_variable].of))
      return;
    if (draft_.inputs(node).size() != pattern.operands.size()) return;
    if (graph_.node(node).result_count < pattern.results) return;
    const std::vector<NodeId> nodes = nodes_;
    const std::vector<ValueId> values = values_;
    nodes_[n] = node;
    std::vector<std::size_t> order(pattern.operands.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      bool fits = true;
      for (std::size_t k = 0; k < pattern.results && fits; ++k)
        fits = set(pattern.first_result + k, graph_.result(node, k));
      for (std::size_t k = 0; k < order.size() && fits; ++k)
        fits = set(pattern.operands[k], draft_.inputs(node)[order[k]]);
      if (fits) extend();
      values_ = values;
    } while (pattern.op != nullptr && commutes(op) && std::ranges::next_permutation(order).found);
    nodes_ = nodes;
  }

  bool set(std::size_t value, ValueId to) {
    if (values_[value].valid()) return values_[value] == to;
    values_[value] = to;
    return true;
  }

  void judge() {
    for (std::size_t a = 0; a < rule_.outputs.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (values_[rule_.outputs[a].left] == values_[rule_.outputs[b].left]) return;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      for (std::size_t k = 0; k < rule_.left.nodes[n].attributes.size(); ++k)
        if (const AttributeTerm& term = rule_.left.nodes[n].attributes[k];
            is_literal(term) && !literal_holds(graph_, graph_.node(nodes_[n]), k, term))
          return;
    Match match{number_, root_, nodes_, values_, {}};
    if (binder_.bind(draft_, placement_, match, nullptr)) found_.push_back(std::move(match));
  }

  const Draft& draft_;
  const plan::Graph& graph_;
  const Rule& rule_;
  const MatchBinder binder_;
  const std::uint32_t number_;
  const Placement& placement_;
  std::vector<Match>& found_;
  NodeId root_;
  std::vector<NodeId> nodes_;    // of the left side; invalid if not assigned yet
  std::vector<ValueId> values_;  // likewise
};

}  // namespace

std::vector<Match> match_one_by_one(const Draft& draft, std::span<const Rule> rules,
                                    const Placement& placement) {
  std::vector<Match> found;
  for (std::uint32_t r = 0; r < rules.size(); ++r) Finder(draft, rules[r], r, placement, found).find();
  std::sort(found.begin(), found.end());
  // If operands are the same value, several orders give the same match.
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace weft::rule
