#include "weft/language/contraction_order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "weft/base/check.h"

namespace weft::language {
namespace {

using plan::Dim;
using plan::Type;

// Bit sets of indices and of factors.
using IndexSet = std::uint64_t;
using FactorSet = std::uint32_t;

// The cost of an intermediate's element in multiply-adds: 8 bytes written and read, at about two
// multiply-adds per byte on processors and accelerators alike.
constexpr double kElementCost = 16;

class Contraction {
 public:
  Contraction(std::span<const Type> factors, std::span<const Symbol> to) {
    for (const Type& factor : factors)
      for (const Dim& dim : factor.dims)
        if (std::ranges::find(dims_, dim.index, &Dim::index) == dims_.end()) dims_.push_back(dim);
    if (!countable()) return;
    for (const Type& factor : factors) {
      IndexSet indices = 0;
      for (const Dim& dim : factor.dims) indices |= set_of(dim.index);
      factors_.push_back(indices);
    }
    for (const Symbol index : to) kept_ |= set_of(index);
  }

  bool countable() const { return dims_.size() <= 64; }
  std::size_t size() const { return factors_.size(); }
  IndexSet factor(std::size_t i) const { return factors_[i]; }
  IndexSet kept() const { return kept_; }

  double points(IndexSet indices) const {
    double points = 1;
    for (; indices != 0; indices &= indices - 1)
      points *= static_cast<double>(dims_[static_cast<std::size_t>(std::countr_zero(indices))].size);
    return points;
  }

  // The cost of joining two results into one that keeps `keeps`.
  double cost(IndexSet left, IndexSet right, IndexSet keeps, bool last) const {
    return points(left | right) + (last ? 0 : kElementCost * points(keeps));
  }

 private:
  IndexSet set_of(Symbol index) const {
    const auto found = std::ranges::find(dims_, index, &Dim::index);
    return found == dims_.end() ? 0 : IndexSet{1} << (found - dims_.begin());
  }

  std::vector<Dim> dims_;
  std::vector<IndexSet> factors_;
  IndexSet kept_ = 0;
};

// Joins as pairs of results, before their indices are known.
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

Pairs as_written(std::size_t factors) {
  Pairs pairs = {{0, 1}};
  for (std::size_t next = 2; next < factors; ++next) pairs.emplace_back(factors + next - 2, next);
  return pairs;
}

class Exact {
 public:
  explicit Exact(const Contraction& of) : of_(of), best_(std::size_t{1} << of.size()) {
    for (std::size_t i = 0; i < of.size(); ++i) best_[std::size_t{1} << i] = {0, 0, of.factor(i)};
    const auto all = static_cast<FactorSet>(best_.size() - 1);
    for (FactorSet set = 3; set <= all; ++set)
      if (!std::has_single_bit(set)) part(set, all);
  }

  Pairs pairs() {
    Pairs pairs;
    add(static_cast<FactorSet>(best_.size() - 1), pairs);
    return pairs;
  }

 private:
  struct Way {
    double cost = std::numeric_limits<double>::infinity();
    FactorSet left = 0;
    IndexSet keeps = 0;
  };

  // Finds the best split of the set. The left side holds the set's first factor, and larger left
  // sides are tried first, as in a chain as written.
  void part(FactorSet set, FactorSet all) {
    Way& way = best_[set];
    IndexSet inside = 0, outside = of_.kept();
    for (std::size_t i = 0; i < of_.size(); ++i) ((set >> i & 1) != 0 ? inside : outside) |= of_.factor(i);
    way.keeps = inside & outside;
    const FactorSet first = set & (~set + 1);
    const FactorSet rest = set ^ first;
    for (FactorSet right = rest & (~rest + 1); right != 0; right = (right - rest) & rest) {
      const FactorSet left = set ^ right;
      const Way &a = best_[left], &b = best_[right];
      const double cost = a.cost + b.cost + of_.cost(a.keeps, b.keeps, way.keeps, set == all);
      if (way.left == 0 || cost < way.cost || (cost == way.cost && prefers_later(right, set ^ way.left)))
        way.cost = cost, way.left = left;
    }
  }

  // Breaks ties between splits of equal cost: prefers a right side with fewer factors, then with
  // later ones.
  static bool prefers_later(FactorSet right, FactorSet than) {
    return std::popcount(right) < std::popcount(than) ||
           (std::popcount(right) == std::popcount(than) && right > than);
  }

  std::size_t add(FactorSet set, Pairs& pairs) const {
    if (std::has_single_bit(set)) return static_cast<std::size_t>(std::countr_zero(set));
    const FactorSet left = best_[set].left;
    const std::size_t a = add(left, pairs), b = add(set ^ left, pairs);
    pairs.emplace_back(a, b);
    return of_.size() + pairs.size() - 1;
  }

  const Contraction& of_;
  std::vector<Way> best_;  // by subset
};

Pairs greedy(const Contraction& of) {
  struct Part {
    std::size_t number;
    IndexSet indices;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < of.size(); ++i) parts.push_back({i, of.factor(i)});
  Pairs pairs;
  while (parts.size() > 1) {
    std::size_t left = 0, right = 1;
    IndexSet keeps = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t k = i + 1; k < parts.size(); ++k) {
        IndexSet outside = of.kept();
        for (std::size_t o = 0; o < parts.size(); ++o)
          if (o != i && o != k) outside |= parts[o].indices;
        const IndexSet kept = (parts[i].indices | parts[k].indices) & outside;
        const double cost = of.cost(parts[i].indices, parts[k].indices, kept, parts.size() == 2);
        if (cost < least) least = cost, left = i, right = k, keeps = kept;
      }
    pairs.emplace_back(parts[left].number, parts[right].number);
    parts[left] = {of.size() + pairs.size() - 1, keeps};
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(right));
  }
  return pairs;
}

}  // namespace

std::vector<Join> order_contraction(std::span<const Type> factors, std::span<const Symbol> to) {
  WEFT_CHECK(factors.size() >= 2);
  const Contraction of(factors, to);
  const Pairs pairs = !of.countable()                   ? as_written(factors.size())
                      : factors.size() <= kExactFactors ? Exact(of).pairs()
                                                        : greedy(of);
  std::vector<std::vector<Symbol>> results;
  for (const Type& factor : factors) {
    results.emplace_back();
    for (const Dim& dim : factor.dims) results.back().push_back(dim.index);
  }
  const auto has = [](std::span<const Symbol> indices, Symbol index) {
    return std::ranges::find(indices, index) != indices.end();
  };
  std::vector<bool> used(factors.size() + pairs.size());
  std::vector<Join> joins;
  for (const auto& [left, right] : pairs) {
    used[left] = used[right] = true;
    const auto needed = [&](Symbol index) {
      for (std::size_t i = 0; i < results.size(); ++i)
        if (!used[i] && has(results[i], index)) return true;
      return has(to, index);
    };
    Join join{left, right, {}};
    for (const std::size_t side : {left, right})
      for (const Symbol index : results[side])
        if (needed(index) && !has(join.keeps, index)) join.keeps.push_back(index);
    results.push_back(join.keeps);
    joins.push_back(std::move(join));
  }
  joins.back().keeps.assign(to.begin(), to.end());
  return joins;
}

}  // namespace weft::language
