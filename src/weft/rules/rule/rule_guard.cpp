#include "weft/rules/rule/rule_guard.h"

#include <algorithm>
#include <bit>

#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/draw_layouts.h"
#include "weft/rules/rule/numbers.h"

namespace weft::rule {
namespace {

constexpr std::size_t kMostAtoms = 256;

// All candidate conditions, the most informative first.
class Atoms {
 public:
  explicit Atoms(const Rule& rule) : rule_(rule) {
    collect();
    distinct_indices();
    using enum Condition::Kind;
    for (const Number& variable : variables_)
      for (const std::int64_t value : {1, 0}) add(comparison(equal, variable, literal_number(value)));
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (sizes_[a].index == sizes_[b].index) add(comparison(equal, sizes_[b], sizes_[a]));
    for (const Number& size : sizes_)
      for (const std::int64_t most : largest_sizes(rule))
        add(comparison(less_equal, size, literal_number(most)));
    for (std::uint16_t input = 0; input < rule.inputs.size(); ++input) {
      Condition condition = comparison(real, {});
      condition.value = input;
      add(condition);
      condition.kind = same_dtype;
      condition.other = rule.outputs[0].left;
      add(condition);
    }
    if (is_distributed(rule))
      for (const Number& size : sizes_) {
        Condition condition = comparison(whole, {});
        condition.value = size.value;
        condition.other = size.index;
        add(condition);
      }
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (sizes_[a].index != sizes_[b].index) add(comparison(equal, sizes_[b], sizes_[a]));
    for (const Number& variable : variables_)
      for (const Number& size : sizes_) {
        add(comparison(
            equal, size,
            combined(Number::Kind::add, combined(Number::Kind::multiply, literal_number(2), variable),
                     literal_number(1))));
        add(comparison(divides, variable, size));
        add(comparison(less_equal, variable, size));
        add(comparison(less_equal, size, variable));
      }
    for (const Number& a : variables_)
      for (const Number& b : variables_)
        if (!(a == b)) add(comparison(less_equal, a, b));
    for (const Number& ranks : ranks_)
      for (const Number& size : sizes_) add(comparison(divides, ranks, size));
    for (const Number& size : sizes_) {
      add(comparison(odd, size));
      add(comparison(even, size));
    }
    for (const Number& a : sizes_)
      for (const Number& b : sizes_)
        if (!(a == b)) add(comparison(less_equal, a, b));
  }

  const std::vector<Condition>& all() const { return all_; }

 private:
  void add(Condition condition) {
    if (all_.size() < kMostAtoms) all_.push_back(std::move(condition));
  }

  void collect() {
    for (std::uint16_t input = 0; input < rule_.inputs.size(); ++input)
      for (const std::uint16_t index : rule_.inputs[input].list) {
        Number size;
        size.kind = Number::Kind::size;
        size.value = input;
        size.index = index;
        sizes_.push_back(size);
      }
    const std::vector<bool> axes = axis_variables(rule_);
    for (std::uint16_t k = 0; k < rule_.variables.size(); ++k) {
      Number number;
      number.variable = k;
      number.kind = axes[k] ? Number::Kind::ranks : Number::Kind::variable;
      if (axes[k])
        ranks_.push_back(number);
      else if (rule_.variables[k].kind == plan::AttributeKind::integer)
        variables_.push_back(number);
    }
  }

  void distinct_indices() {
    for (std::uint16_t a = 0; a < rule_.indices.size(); ++a)
      for (std::uint16_t b = 0; b < a; ++b) {
        const bool together = std::ranges::any_of(rule_.left.lists, [&](const IndexList& list) {
          return std::ranges::find(list, a) != list.end() && std::ranges::find(list, b) != list.end();
        });
        if (together) continue;
        Condition condition = comparison(Condition::Kind::distinct, {});
        condition.value = b;
        condition.other = a;
        add(condition);
      }
  }

  const Rule& rule_;
  std::vector<Number> sizes_, variables_, ranks_;
  std::vector<Condition> all_;
};

// One bit per instance.
using Bits = std::vector<std::uint64_t>;

std::size_t common(const Bits& a, const Bits& b) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < a.size(); ++k) count += static_cast<std::size_t>(std::popcount(a[k] & b[k]));
  return count;
}

Bits both(const Bits& a, const Bits& b) {
  Bits result(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) result[k] = a[k] & b[k];
  return result;
}

class RuleGuardSearch {
 public:
  RuleGuardSearch(const std::vector<Bits>& holds, const Bits& good, const Bits& bad)
      : holds_(holds), good_(good), bad_(bad) {}

  std::vector<std::size_t> best() {
    const std::size_t enough = std::max<std::size_t>(1, common(good_, good_) / 20);
    best_good_ = enough - 1;
    std::vector<std::size_t> chosen;
    const Bits all(good_.size(), ~std::uint64_t{0});
    for (std::size_t size = 1; size <= 3 && best_.empty(); ++size) extend(chosen, all, 0, size);
    return best_;
  }

 private:
  void extend(std::vector<std::size_t>& chosen, const Bits& held, std::size_t from, std::size_t more) {
    const std::size_t failures = common(held, bad_);
    if (more == 0) {
      const std::size_t successes = common(held, good_);
      if (failures == 0 && successes > best_good_) {
        best_good_ = successes;
        best_ = chosen;
      }
      return;
    }
    for (std::size_t atom = from; atom < holds_.size(); ++atom) {
      const Bits next = both(held, holds_[atom]);
      // Each condition must exclude failures and keep more successes than the best guard so far.
      if (common(next, bad_) == failures || common(next, good_) <= best_good_) continue;
      chosen.push_back(atom);
      extend(chosen, next, atom + 1, more - 1);
      chosen.pop_back();
    }
  }

  const std::vector<Bits>& holds_;
  const Bits &good_, &bad_;
  std::size_t best_good_ = 0;
  std::vector<std::size_t> best_;
};

}  // namespace

std::optional<std::vector<Condition>> find_guard(const Rule& rule, std::span<const JudgedInstance> judged) {
  const Atoms atoms(rule);
  const std::size_t words = (judged.size() + 63) / 64;
  Bits good(words, 0), bad(words, 0);
  std::vector<Bits> holding(atoms.all().size(), Bits(words, 0));
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    (judged[i].good ? good : bad)[i / 64] |= bit;
    for (std::size_t atom = 0; atom < atoms.all().size(); ++atom)
      if (holds(atoms.all()[atom], judged[i].instance.place(rule))) holding[atom][i / 64] |= bit;
  }
  const std::vector<std::size_t> best = RuleGuardSearch(holding, good, bad).best();
  if (best.empty()) return std::nullopt;
  std::vector<Condition> guard;
  for (const std::size_t atom : best) guard.push_back(atoms.all()[atom]);
  return guard;
}

}  // namespace weft::rule
