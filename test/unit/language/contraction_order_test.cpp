// The order in which a product's factors are contracted, compared with all other orders.
#include "weft/language/contraction_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace weft::language {
namespace {

using plan::Dim;
using plan::Type;

struct Factors {
  std::vector<std::vector<Dim>> dims;

  std::vector<Type> types() const {
    std::vector<Type> types;
    for (const auto& each : dims) types.push_back({plan::DType::f32, each});
    return types;
  }
};

Symbol index(std::uint32_t i) { return Symbol(i); }

using Indices = std::set<std::uint32_t>;

Indices indices_of(const std::vector<Dim>& dims) {
  Indices all;
  for (const Dim& dim : dims) all.insert(dim.index.value);
  return all;
}

// The cost that the code under test states: multiply-adds, plus 16 per element of an intermediate.
class ReferenceCost {
 public:
  ReferenceCost(const Factors& factors, const std::vector<Symbol>& to) {
    for (const auto& dims : factors.dims) {
      parts_.push_back(indices_of(dims));
      for (const Dim& dim : dims) sizes_[dim.index.value] = static_cast<double>(dim.size);
    }
    for (const Symbol symbol : to) to_.insert(symbol.value);
  }

  double points(const Indices& indices) const {
    double points = 1;
    for (const std::uint32_t i : indices) points *= sizes_.at(i);
    return points;
  }

  static Indices joined(const Indices& a, const Indices& b) {
    Indices both = a;
    both.insert(b.begin(), b.end());
    return both;
  }

  Indices keeps(const Indices& both, const std::vector<Indices>& others) const {
    Indices kept;
    for (const std::uint32_t i : both)
      if (to_.contains(i) || std::ranges::any_of(others, [&](const Indices& o) { return o.contains(i); }))
        kept.insert(i);
    return kept;
  }

  double best() const { return best_of(parts_); }

  double price(const std::vector<Join>& joins) const {
    std::vector<Indices> results = parts_;
    std::vector<bool> used(parts_.size() + joins.size());
    double price = 0;
    for (const Join& join : joins) {
      EXPECT_FALSE(used[join.left] || used[join.right]);
      used[join.left] = used[join.right] = true;
      std::vector<Indices> others;
      for (std::size_t i = 0; i < results.size(); ++i)
        if (!used[i]) others.push_back(results[i]);
      const Indices both = joined(results[join.left], results[join.right]), kept = keeps(both, others);
      price += points(both) + (others.empty() ? 0 : 16 * points(kept));
      Indices said;
      for (const Symbol symbol : join.keeps) said.insert(symbol.value);
      EXPECT_EQ(said, kept);
      EXPECT_EQ(said.size(), join.keeps.size());
      results.push_back(kept);
    }
    return price;
  }

 private:
  double best_of(const std::vector<Indices>& parts) const {
    if (parts.size() == 1) return 0;
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t k = i + 1; k < parts.size(); ++k) {
        std::vector<Indices> rest;
        for (std::size_t o = 0; o < parts.size(); ++o)
          if (o != i && o != k) rest.push_back(parts[o]);
        const Indices both = joined(parts[i], parts[k]), kept = keeps(both, rest);
        const double here = points(both) + (rest.empty() ? 0 : 16 * points(kept));
        rest.push_back(kept);
        best = std::min(best, here + best_of(rest));
      }
    return best;
  }

  std::vector<Indices> parts_;
  std::map<std::uint32_t, double> sizes_;
  Indices to_;
};

Factors draw(std::mt19937& random, std::size_t count, std::vector<Symbol>& to) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 6; ++i) sizes.push_back(std::int64_t{1} << random() % 8);
  Factors factors;
  Indices seen;
  for (std::size_t f = 0; f < count; ++f) {
    factors.dims.emplace_back();
    for (std::uint32_t i = 0; i < 6; ++i)
      if (random() % 3 == 0) {
        factors.dims.back().push_back({index(i), sizes[i]});
        seen.insert(i);
      }
  }
  for (const std::uint32_t i : seen)
    if (random() % 3 == 0) to.push_back(index(i));
  return factors;
}

TEST(ContractionOrder, NoOtherOrderCostsLess) {
  std::mt19937 random(22);
  for (int round = 0; round < 200; ++round) {
    std::vector<Symbol> to;
    const Factors factors = draw(random, 2 + random() % 4, to);
    const ReferenceCost reference(factors, to);
    const std::vector<Join> joins = order_contraction(factors.types(), to);
    ASSERT_EQ(joins.size() + 1, factors.dims.size());
    EXPECT_EQ(reference.price(joins), reference.best());
    EXPECT_EQ(joins.back().keeps, to);
  }
}

// A chain of twenty matrices is beyond exact search, but its narrow middle is found.
TEST(ContractionOrder, ContractsManyFactorsGreedily) {
  Factors factors;
  for (std::uint32_t i = 0; i < 20; ++i)
    factors.dims.push_back({{index(i), i == 10 ? 1 : 64}, {index(i + 1), i == 9 ? 1 : 64}});
  const std::vector<Symbol> to = {index(0), index(20)};
  const std::vector<Join> joins = order_contraction(factors.types(), to);
  EXPECT_EQ(joins.size(), 19u);
  EXPECT_LT(ReferenceCost(factors, to).price(joins), 19 * 64.0 * 64 * 17 + 64 * 64);
}

TEST(ContractionOrder, EqualCostsKeepTheWrittenOrder) {
  const Factors factors{{{{index(0), 4}}, {{index(0), 4}}, {{index(0), 4}}, {{index(0), 4}}}};
  const std::vector<Join> joins = order_contraction(factors.types(), {});
  const std::vector<Symbol> same = {index(0)};
  EXPECT_EQ(joins, (std::vector<Join>{{0, 1, same}, {4, 2, same}, {5, 3, {}}}));
}

// Scalars, and the same tensor twice.
TEST(ContractionOrder, FactorsMayLackIndicesAltogether) {
  const Factors factors{{{}, {{index(1), 3}}, {}}};
  const std::vector<Join> joins = order_contraction(factors.types(), {});
  ASSERT_EQ(joins.size(), 2u);
  ReferenceCost(factors, {}).price(joins);
}

}  // namespace
}  // namespace weft::language
