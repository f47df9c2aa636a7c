#include "weft/rules/equation/equation_indices.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weft::equation {
namespace {

Status expect_rank(std::span<const EquationIndices::Dims> operands, std::size_t rank, Verb verb) {
  for (const EquationIndices::Dims& dims : operands)
    if (dims.size() != rank)
      return user_error(
          fmt::format("{} takes operands of {} dims here, found {}", name(verb), rank, dims.size()));
  return {};
}

std::vector<EquationIndices::Dims> one(EquationIndices::Dims dims) {
  std::vector<EquationIndices::Dims> result;
  result.push_back(std::move(dims));
  return result;
}

}  // namespace

Result<EquationIndices> EquationIndices::find(const Equation& equation) {
  EquationIndices indices;
  for (const EquationInput& input : equation.inputs) {
    Dims dims;
    for (std::size_t d = 0; d < input.example.size(); ++d) dims.push_back(indices.add());
    if (input.holding == Holding::sharded) WEFT_TRY_STATUS(indices.pin(dims, input.sharded_dim));
    indices.inputs_.push_back(std::move(dims));
  }
  WEFT_TRY(source, indices.tie(equation.source));
  indices.sides_[0] = std::move(source);
  WEFT_TRY(target, indices.tie(equation.target));
  indices.sides_[1] = std::move(target);
  for (const auto& [left, right] : equation.outputs) {
    if (indices.result(0, left).size() != indices.result(1, right).size())
      return user_error("the sides have results of different rank");
    WEFT_TRY_STATUS(indices.join(indices.result(0, left), indices.result(1, right)));
  }
  WEFT_TRY_STATUS(indices.settle());
  return indices;
}

bool EquationIndices::always_together(int a, int b) const {
  const auto agree = [&](const Dims& dims) {
    return (std::ranges::find(dims, a) == dims.end()) == (std::ranges::find(dims, b) == dims.end());
  };
  if (!std::ranges::all_of(inputs_, agree)) return false;
  for (const Results& side : sides_)
    for (const std::vector<Dims>& results : side)
      if (!std::ranges::all_of(results, agree)) return false;
  return true;
}

int EquationIndices::add() {
  parent_.push_back(count());
  return parent_.back();
}

int EquationIndices::root(int dim) const {
  while (parent_[dim] != dim) dim = parent_[dim];
  return dim;
}

void EquationIndices::join(int a, int b) { parent_[std::max(root(a), root(b))] = std::min(root(a), root(b)); }

Status EquationIndices::join(const Dims& a, const Dims& b) {
  if (a.size() != b.size())
    return user_error(fmt::format("operands have {} and {} dims, expected as many", a.size(), b.size()));
  for (std::size_t d = 0; d < a.size(); ++d) join(a[d], b[d]);
  return {};
}

Status EquationIndices::pin(const Dims& dims, int dim) {
  if (dim < 0 || dim >= static_cast<int>(dims.size()))
    return user_error(fmt::format("a value of {} dims has no dim {}", dims.size(), dim));
  pinned_.push_back(dims[dim]);
  return {};
}

// Replaces every dim by the number of its index.
Status EquationIndices::settle() {
  alone_.assign(parent_.size(), false);
  for (const int dim : pinned_) alone_[root(dim)] = true;
  const auto rename = [&](Dims& dims) -> Status {
    for (int& dim : dims) dim = root(dim);
    Dims sorted = dims;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
      return user_error("a value would have an index twice");
    return {};
  };
  for (Dims& dims : inputs_) WEFT_TRY_STATUS(rename(dims));
  for (Results& side : sides_)
    for (std::vector<Dims>& results : side)
      for (Dims& dims : results) WEFT_TRY_STATUS(rename(dims));
  return {};
}

Result<EquationIndices::Results> EquationIndices::tie(std::span<const Operation> side) {
  Results results;
  for (const Operation& operation : side) {
    std::vector<Dims> operands;
    for (const Operand& operand : operation.operands)
      operands.push_back(operand.operation < 0 ? inputs_[operand.result]
                                               : results[operand.operation][operand.result]);
    WEFT_TRY(made, tie(operation, operands));
    results.push_back(std::move(made));
  }
  return results;
}

Result<std::vector<EquationIndices::Dims>> EquationIndices::tie(const Operation& operation,
                                                                const std::vector<Dims>& operands) {
  const Details& details = operation.details;
  switch (operation.verb) {
    case Verb::ewadd:
    case Verb::ewmul:
    case Verb::sub:
    case Verb::concat:
      for (std::size_t i = 1; i < operands.size(); ++i) WEFT_TRY_STATUS(join(operands[0], operands[i]));
      if (operation.verb == Verb::concat) WEFT_TRY_STATUS(pin(operands[0], details.axis));
      return one(operands[0]);
    case Verb::smul:
      // The factor is a scalar: the result has the other operand's dims.
      WEFT_TRY_STATUS(expect_rank(std::span(operands).subspan(1), 0, operation.verb));
      return one(operands[0]);
    case Verb::relu:
    case Verb::square:
    case Verb::identity:
    case Verb::all_reduce:
    case Verb::permute:
    case Verb::broadcast: return one(operands[0]);
    case Verb::shard:
    case Verb::reduce_scatter:
    case Verb::all_gather: WEFT_TRY_STATUS(pin(operands[0], details.axis)); return one(operands[0]);
    case Verb::all_to_all:
      WEFT_TRY_STATUS(pin(operands[0], details.axis));
      WEFT_TRY_STATUS(pin(operands[0], details.other_axis));
      return one(operands[0]);
    case Verb::split:
      WEFT_TRY_STATUS(pin(operands[0], details.axis));
      return std::vector<Dims>(static_cast<std::size_t>(details.parts), operands[0]);
    case Verb::transpose: return one(transposed(operands[0], details));
    case Verb::matmul:
      WEFT_TRY_STATUS(expect_rank(operands, 2, operation.verb));
      join(operands[0][1], operands[1][0]);
      return one({operands[0][0], operands[1][1]});
    case Verb::conv2d:
      WEFT_TRY_STATUS(expect_rank(operands, 4, operation.verb));
      for (const Dims& dims : operands)
        for (int d = 0; d < 4; ++d) WEFT_TRY_STATUS(pin(dims, d));
      return one({operands[0][0], operands[1][0], operands[0][2], operands[0][3]});
    case Verb::pool_max:
    case Verb::pool_avg:
    case Verb::enlarge:
      WEFT_TRY_STATUS(expect_rank(operands, 4, operation.verb));
      for (int d = operation.verb == Verb::enlarge ? 0 : 2; d < 4; ++d) WEFT_TRY_STATUS(pin(operands[0], d));
      return one(operands[0]);
    default: return user_error(fmt::format("plans have no operator for: {}", name(operation.verb)));
  }
}

}  // namespace weft::equation
