// weft/rules/equation/follows.h -- whether an equation follows from others.
//
//   known:  smul(matmul(x, y), c) = matmul(x, smul(y, c))
//           matmul(matmul(x, y), z) = matmul(x, matmul(y, z))
//   goal:   smul(matmul(matmul(i1, i4), i5), i20) = matmul(i1, matmul(i4, smul(i5, i20)))
//           follows from both
//
// Equality saturation: both sides are added to a small e-graph (a store of equal terms with
// congruence closure), and known equations are applied round by round, until the sides are equal or
// the limits are reached. A known equation is used only in directions in which it is known to keep
// graphs well typed. So if both sides of a derived equation are well typed, they are equal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/rules/equation/equation.h"

namespace weft::equation {

class Theory {
 public:
  struct Limits {
    std::int32_t rounds = 4;
    std::int32_t nodes = 300;
    std::size_t below = ~std::size_t{0};  // only equations smaller than this are used (see size_of)
  };

  Theory();
  ~Theory();
  Theory(Theory&&) noexcept;
  Theory& operator=(Theory&&) noexcept;

  // Equations are numbered in the order of addition. `forward`: may be used from source to target.
  void add(const Equation& equation, bool forward, bool backward);
  std::size_t size() const;

  // The equations used; nullopt if the sides did not become equal, which does not refute the
  // equation.
  std::optional<std::vector<std::size_t>> derive(const Equation& equation, Limits limits) const;
  std::optional<std::vector<std::size_t>> derive(const Equation& equation) const {
    return derive(equation, {});
  }
  // Like derive(), but drops equations that are quickly found to be unnecessary.
  std::optional<std::vector<std::size_t>> derive_minimal(const Equation& equation, Limits limits) const;

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace weft::equation
