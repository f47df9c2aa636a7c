// weft/rules/equation/equation_side.h -- one side of an equation at given sizes, ready to run.
//
//   sizes of i1 [2,4], i4 [4,3]; side: relu(matmul(i1, i4))   -> output [2,3]
//
// On a mesh every value is one tensor per rank. Ranks may hold tensors of different sizes, when a
// dim is not divisible by the number of ranks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// The sizes of every input; for a sharded one the global sizes.
using InputSizes = std::vector<std::vector<std::int64_t>>;

// A value as one tensor per rank.
template <class T>
using Held = std::vector<ops::Tensor<T>>;

// The shapes of an input, per rank. Fails if a slice would be empty.
Result<std::vector<Shape>> shapes_of(const EquationInput& input, std::span<const std::int64_t> sizes,
                                     std::int32_t ranks);

enum class Which : std::uint8_t { source, target };

class EquationSide {
 public:
  // Fails if the side is ill-typed at these sizes. The algebra must outlive the side.
  static Result<EquationSide> prepare(Algebra& algebra, const Equation& equation, Which which,
                                      const InputSizes& sizes, std::int32_t ranks);

  // The shapes of an output or operand, per rank.
  const std::vector<Shape>& shapes(Operand operand) const;
  const std::vector<Operand>& outputs() const { return outputs_; }
  std::span<const Operation> operations() const { return operations_; }

  double work() const;  // per run: operations plus elements computed
  // The plans of its operations, one per rank.
  std::vector<const plan::Graph*> plans() const;

  // `inputs` are in the equation's order, the results in the order of its outputs.
  template <class T>
  std::vector<Held<T>> run(std::span<const Held<T>> inputs, const ops::Numbers<T>& numbers) const;

 private:
  EquationSide() = default;

  struct Step {
    std::vector<const Algebra::Prepared*> prepared;  // one per rank; empty for communication
    std::vector<std::vector<Shape>> results;         // [result][rank]
  };

  const Algebra* algebra_ = nullptr;
  std::int32_t ranks_ = 1;
  std::vector<Operation> operations_;       // with constants sized and factors 1/N set
  std::vector<std::vector<Shape>> inputs_;  // [input][rank]
  std::vector<Step> steps_;
  std::vector<Operand> outputs_;
};

}  // namespace weft::equation
