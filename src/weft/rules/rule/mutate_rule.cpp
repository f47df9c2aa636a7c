#include "weft/rules/rule/mutate_rule.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::rule {
namespace {

class Mutating {
 public:
  explicit Mutating(const Rule& rule) : rule_(rule) {}

  std::vector<MutatedRule> all() && {
    for (std::size_t n = 0; n < rule_.right.nodes.size(); ++n) {
      const PatternNode& node = rule_.right.nodes[n];
      if (node.operands.size() > 1)
        at(n, "operands swapped", [](PatternNode& of) { std::swap(of.operands[0], of.operands[1]); });
      if (const plan::Operator* other = sibling(node.op))
        at(n, fmt::format("{} instead", other->name()), [&](PatternNode& of) { of.op = other; });
      for (std::size_t k = 0; k < node.operands.size(); ++k)
        if (node.operands[k] < rule_.inputs.size() && rule_.inputs.size() > 1)
          at(n, "another input", [&](PatternNode& of) {
            of.operands[k] = static_cast<std::uint16_t>((of.operands[k] + 1u) % rule_.inputs.size());
          });
      for (std::size_t k = 0; k < node.attributes.size(); ++k) attribute(n, k);
    }
    for (std::size_t c = 0; c < rule_.when.size(); ++c) {
      Rule changed = rule_;
      changed.when.erase(changed.when.begin() + static_cast<std::ptrdiff_t>(c));
      made_.push_back({std::move(changed), fmt::format("{}, without the condition {}", rule_.name, c + 1)});
    }
    return std::move(made_);
  }

 private:
  template <class Change>
  void at(std::size_t node, std::string_view what, Change change) {
    Rule changed = rule_;
    change(changed.right.nodes[node]);
    if (changed == rule_) return;
    made_.push_back(
        {std::move(changed), fmt::format("{}, operator {} of the right: {}", rule_.name, node + 1, what)});
  }

  void attribute(std::size_t node, std::size_t k) {
    const AttributeTerm& term = rule_.right.nodes[node].attributes[k];
    switch (term.kind) {
      case AttributeTerm::Kind::number:
        at(node, "a number one more", [&](PatternNode& of) {
          Number sum, one;
          one.literal = 1;
          sum.kind = Number::Kind::add;
          sum.parts = {of.attributes[k].number, one};
          of.attributes[k].number = sum;
        });
        break;
      case AttributeTerm::Kind::word:
        if (term.word == "sum")
          at(node, "max instead of sum", [&](PatternNode& of) { of.attributes[k].word = "max"; });
        break;
      case AttributeTerm::Kind::variable:
        for (std::uint16_t other = 0; other < rule_.variables.size(); ++other)
          if (other != term.variable && rule_.variables[other].kind == rule_.variables[term.variable].kind)
            at(node, fmt::format("{} instead", rule_.variables[other].name),
               [&](PatternNode& of) { of.attributes[k].variable = other; });
        break;
      default: break;
    }
  }

  // Another pointwise operator with the same number of operands.
  static const plan::Operator* sibling(const plan::Operator* op) {
    static const std::array<const plan::Operator*, 5> kOfTwo = {&ops::add(), &ops::sub(), &ops::mul(),
                                                                &ops::maximum(), &ops::minimum()};
    static const std::array<const plan::Operator*, 4> kOfOne = {&ops::neg(), &ops::relu(), &ops::abs(),
                                                                &ops::exp()};
    const ops::Pointwise* row = op != nullptr ? ops::find_pointwise(*op) : nullptr;
    if (row == nullptr || row->gives_bool || row->arity > 2) return nullptr;
    const auto next = [&](const auto& from) {
      const auto found = std::ranges::find(from, op);
      return found == from.end() || found + 1 == from.end() ? from.front() : *(found + 1);
    };
    return row->arity == 2 ? next(kOfTwo) : next(kOfOne);
  }

  const Rule& rule_;
  std::vector<MutatedRule> made_;
};

}  // namespace

std::vector<MutatedRule> mutations_of(const Rule& rule) { return Mutating(rule).all(); }

}  // namespace weft::rule
