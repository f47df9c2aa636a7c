// weft/rules/equation/follows.h -- whether an equation follows from others.
//
//   known:  smul(matmul(x, y), c) = matmul(x, smul(y, c))
//           matmul(matmul(x, y), z) = matmul(x, matmul(y, z))
//   asked:  smul(matmul(matmul(i1, i4), i5), i20) = matmul(i1, matmul(i4, smul(i5, i20)))
//           follows from both
//
// Both sides go into one small e-graph (a store of equal terms, closed under "equal operands give
// equal results"); known equations add what they say, round by round, until the sides meet or the limits
// are reached. A known equation may be used in the directions in which it is known to keep a graph well
// typed. So where both sides of a derived equation are well typed, they are equal.
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
    std::size_t below = ~std::size_t{0};  // equations of this size (see size_of) and larger are not used
  };

  Theory();
  ~Theory();
  Theory(Theory&&) noexcept;
  Theory& operator=(Theory&&) noexcept;

  // Its number is the number of equations added before. `forward`: from source to target may be used.
  void add(const Equation& equation, bool forward, bool backward);
  std::size_t size() const;

  // The equations used, or nothing where the sides did not meet: then it may still follow.
  std::optional<std::vector<std::size_t>> derive(const Equation& equation, Limits limits) const;
  std::optional<std::vector<std::size_t>> derive(const Equation& equation) const {
    return derive(equation, {});
  }
  // As few of the equations as can be found quickly.
  std::optional<std::vector<std::size_t>> derive_shortly(const Equation& equation, Limits limits) const;

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace weft::equation
