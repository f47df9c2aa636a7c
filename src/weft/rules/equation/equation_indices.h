// weft/rules/equation/equation_indices.h -- which dims of an equation's values have the same index.
//
//   matmul(i1, i4)      i1[0, 1] i4[1, 2] -> [0, 2]     a product joins the inner dims
//   ewadd(i1, i2)       i1[0, 1] i2[0, 1] -> [0, 1]
//
// Indices are numbered: two dims with the same number must have the same name in a plan.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// Permutes a list that has one entry per dim like the transpose does.
template <class List>
List transposed(const List& list, const Details& details) {
  List result;
  for (std::size_t d = 0; d < list.size(); ++d)
    result.push_back(
        list[details.order.empty() ? list.size() - 1 - d : static_cast<std::size_t>(details.order[d])]);
  return result;
}

class EquationIndices {
 public:
  // Fails if plans have no such operation, the sides' results differ in rank, or a value would have
  // an index twice.
  static Result<EquationIndices> find(const Equation& equation);

  using Dims = std::vector<int>;
  const Dims& input(std::size_t i) const { return inputs_[i]; }
  const Dims& result(std::size_t side, const Operand& operand) const {
    return operand.operation < 0 ? inputs_[operand.result] : sides_[side][operand.operation][operand.result];
  }
  int count() const { return static_cast<int>(parent_.size()); }
  bool exists(int index) const { return parent_[index] == index; }
  bool referred_to_alone(int index) const { return alone_[index]; }
  // Whether the two indices occur in the same values; one variable may then stand for both.
  bool always_together(int a, int b) const;

 private:
  using Results = std::vector<std::vector<Dims>>;  // [operation][result]

  Result<Results> tie(std::span<const Operation> side);
  Result<std::vector<Dims>> tie(const Operation& operation, const std::vector<Dims>& operands);
  int add();
  int root(int dim) const;
  void join(int a, int b);
  Status join(const Dims& a, const Dims& b);
  Status pin(const Dims& dims, int dim);
  Status settle();

  std::vector<int> parent_;
  std::vector<bool> alone_;
  std::vector<int> pinned_;
  std::vector<Dims> inputs_;
  std::array<Results, 2> sides_;
};

}  // namespace weft::equation
