#include "weft/rules/equation/equation_side.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::equation {

Result<std::vector<Shape>> shapes_of(const EquationInput& input, std::span<const std::int64_t> sizes,
                                     std::int32_t ranks) {
  std::vector<Shape> shapes;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    Shape shape = shape_of({sizes.begin(), sizes.end()});
    if (input.holding == Holding::sharded) {
      if (input.sharded_dim < 0 || static_cast<std::size_t>(input.sharded_dim) >= shape.rank())
        return user_error(fmt::format("{} is sharded along dim {} but has {}", input.name, input.sharded_dim,
                                      shape.rank()));
      std::int64_t& size = shape.sizes[static_cast<std::size_t>(input.sharded_dim)];
      const SliceOf slice = slice_of(size, rank, ranks);
      if (slice.begin == slice.end)
        return user_error(fmt::format("{} leaves a rank of {} without elements", input.name, ranks));
      size = slice.end - slice.begin;
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Result<EquationSide> EquationSide::prepare(Algebra& algebra, const Equation& equation, Which which,
                                           const InputSizes& sizes, std::int32_t ranks) {
  EquationSide side;
  side.algebra_ = &algebra;
  side.ranks_ = ranks;
  side.operations_ = which == Which::source ? equation.source : equation.target;
  for (const auto& output : equation.outputs) side.outputs_.push_back(output[which == Which::source ? 0 : 1]);
  for (std::size_t k = 0; k < equation.inputs.size(); ++k) {
    WEFT_TRY(shapes, shapes_of(equation.inputs[k], sizes[k], ranks));
    side.inputs_.push_back(std::move(shapes));
  }
  if (std::ranges::any_of(side.operations_, [](const Operation& o) { return is_constant(o.verb); })) {
    std::vector<Shape> first;  // constants are the same on all ranks, so use the first
    for (const auto& shapes : side.inputs_) first.push_back(shapes[0]);
    WEFT_TRY(sized, size_constants(side.operations_, first));
    side.operations_ = std::move(sized);
  }
  const auto count = static_cast<std::size_t>(ranks);
  for (Operation& operation : side.operations_) {
    if (operation.details.factor_is_one_over_ranks) operation.details.parts = ranks;
    Step step;
    if (is_communication(operation.verb)) {
      WEFT_TRY(shapes, infer_ranks(operation, side.shapes(operation.operands[0])));
      step.results.push_back(std::move(shapes));
    } else {
      std::vector<Shape> operands;
      for (std::size_t rank = 0; rank < count; ++rank) {
        operands.clear();
        for (const Operand operand : operation.operands) operands.push_back(side.shapes(operand)[rank]);
        WEFT_TRY(prepared, algebra.prepare(operation, operands));
        step.prepared.push_back(prepared);
        const std::vector<Shape>& results = algebra.results(*prepared);
        step.results.resize(results.size());
        for (std::size_t k = 0; k < results.size(); ++k) step.results[k].push_back(results[k]);
      }
    }
    side.steps_.push_back(std::move(step));
  }
  return side;
}

const std::vector<Shape>& EquationSide::shapes(Operand operand) const {
  const auto result = static_cast<std::size_t>(operand.result);
  return operand.operation < 0 ? inputs_[result]
                               : steps_[static_cast<std::size_t>(operand.operation)].results[result];
}

double EquationSide::work() const {
  double total = 0;
  for (const Step& step : steps_) {
    for (const Algebra::Prepared* prepared : step.prepared) total += algebra_->flops(*prepared);
    for (const auto& shapes : step.results)
      for (const Shape& shape : shapes) total += static_cast<double>(elements_of(shape));
  }
  return total;
}

std::vector<const plan::Graph*> EquationSide::plans() const {
  std::vector<const plan::Graph*> plans;
  for (const Step& step : steps_)
    for (const Algebra::Prepared* prepared : step.prepared) plans.push_back(&algebra_->plan(*prepared));
  return plans;
}

template <class T>
std::vector<Held<T>> EquationSide::run(std::span<const Held<T>> inputs,
                                       const ops::Numbers<T>& numbers) const {
  std::vector<std::vector<Held<T>>> made(steps_.size());  // [operation][result][rank]
  const auto held = [&](Operand operand) -> const Held<T>& {
    const auto result = static_cast<std::size_t>(operand.result);
    return operand.operation < 0 ? inputs[result] : made[static_cast<std::size_t>(operand.operation)][result];
  };
  std::vector<const ops::Tensor<T>*> operands;
  std::vector<ops::Tensor<T>> results;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Operation& operation = operations_[k];
    const Step& step = steps_[k];
    if (step.prepared.empty()) {
      made[k].push_back(communicate<T>(operation, held(operation.operands[0]), numbers).value());
      continue;
    }
    made[k].resize(step.results.size(), Held<T>(step.prepared.size()));
    results.resize(step.results.size());
    for (std::size_t rank = 0; rank < step.prepared.size(); ++rank) {
      operands.clear();
      for (const Operand operand : operation.operands) operands.push_back(&held(operand)[rank]);
      algebra_->run<T>(*step.prepared[rank], operands, results, numbers);
      for (std::size_t r = 0; r < results.size(); ++r) std::swap(made[k][r][rank], results[r]);
    }
  }
  std::vector<Held<T>> outputs;
  for (const Operand output : outputs_) outputs.push_back(held(output));
  return outputs;
}

template std::vector<Held<ops::Field>> EquationSide::run(std::span<const Held<ops::Field>>,
                                                         const ops::Numbers<ops::Field>&) const;
template std::vector<Held<ops::Rounded>> EquationSide::run(std::span<const Held<ops::Rounded>>,
                                                           const ops::Numbers<ops::Rounded>&) const;
template std::vector<Held<double>> EquationSide::run(std::span<const Held<double>>,
                                                     const ops::Numbers<double>&) const;

}  // namespace weft::equation
