// weft/rules/equation/equation_side.h -- one side of an equation at given sizes of its inputs, ready to run on values.
//
//   sizes of i1 [2,4], i4 [4,3]; side: relu(matmul(i1, i4))   -> output [2,3]
//
// On a mesh every value is one tensor a rank. Ranks may hold tensors of other sizes, as the slices of a
// dim that their number does not divide are.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// The sizes of every input; of a sharded one those of all ranks together.
using InputSizes = std::vector<std::vector<std::int64_t>>;

// What each rank holds of a value.
template <class T>
using Held = std::vector<ops::Tensor<T>>;

// The shapes that each rank holds of an input. Fails when a slice would be empty.
Result<std::vector<Shape>> shapes_of(const EquationInput& input, std::span<const std::int64_t> sizes,
                                     std::int32_t ranks);

enum class Which : std::uint8_t { source, target };

class EquationSide {
 public:
  // Fails when the side is ill-typed at these sizes. The algebra must outlive the side.
  static Result<EquationSide> prepare(Algebra& algebra, const Equation& equation, Which which,
                                      const InputSizes& sizes, std::int32_t ranks);

  // Shapes that each rank holds of an output or operand.
  const std::vector<Shape>& shapes(Operand operand) const;
  const std::vector<Operand>& outputs() const { return outputs_; }
  std::span<const Operation> operations() const { return operations_; }

  double work() const;  // of one run: operations and elements made
  // The plans that its operations became, one for each rank.
  std::vector<const plan::Graph*> plans() const;

  // `inputs` in the equation's order; the results in that of its outputs.
  template <class T>
  std::vector<Held<T>> run(std::span<const Held<T>> inputs, const ops::Numbers<T>& numbers) const;

 private:
  EquationSide() = default;

  struct Step {
    std::vector<const Algebra::Prepared*> prepared;  // one a rank; none when ranks talk to each other
    std::vector<std::vector<Shape>> results;         // [result][rank]
  };

  const Algebra* algebra_ = nullptr;
  std::int32_t ranks_ = 1;
  std::vector<Operation> operations_;       // constants sized, factors 1/N knowing N
  std::vector<std::vector<Shape>> inputs_;  // [input][rank]
  std::vector<Step> steps_;
  std::vector<Operand> outputs_;
};

}  // namespace weft::equation
