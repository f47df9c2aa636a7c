#include <algorithm>

#include <fmt/format.h>

#include "weft/rules/equation/algebra.h"

namespace weft::equation {
namespace {

constexpr std::int64_t kOpen = -1;  // an unknown size

using Sizes = std::vector<std::int64_t>;

// Traverses a side in order. A value that depends on constants without sizes is open. When an
// operation has an open operand beside a known one, the sizes it needs are propagated back to the
// constant.
class Context {
 public:
  Context(std::span<const Operation> side, std::span<const Shape> inputs)
      : side_(side.begin(), side.end()), inputs_(inputs), shapes_(side.size()) {}

  Result<std::vector<Operation>> size() && {
    for (std::size_t k = 0; k < side_.size(); ++k) {
      ask(side_[k]);
      look(k);
    }
    // Constants that are still open are used only with other open values: use an input's sizes.
    for (Operation& operation : side_)
      if (is_constant(operation.verb) && operation.details.sizes.empty())
        settle(operation, fallback(operation));
    return std::move(side_);
  }

 private:
  const Shape* shape(Operand operand) const {
    const auto result = static_cast<std::size_t>(operand.result);
    if (operand.operation < 0) return &inputs_[result];
    const std::vector<Shape>& made = shapes_[static_cast<std::size_t>(operand.operation)];
    return result < made.size() ? &made[result] : nullptr;
  }

  // Infers the shapes of operation k's results, if those of its operands are known and match.
  void look(std::size_t k) {
    std::vector<Shape> operands;
    for (const Operand operand : side_[k].operands) {
      const Shape* known = shape(operand);
      if (known == nullptr) return;
      operands.push_back(*known);
    }
    if (is_constant(side_[k].verb) && side_[k].details.sizes.empty()) return;
    if (auto results = infer(side_[k], operands); results.ok()) shapes_[k] = std::move(results).value();
  }

  void ask(const Operation& operation) {
    if (operation.operands.size() < 2) return;
    for (std::size_t k = 0; k < operation.operands.size(); ++k) {
      if (shape(operation.operands[k]) != nullptr) continue;
      for (std::size_t j = 0; j < operation.operands.size(); ++j)
        if (const Shape* known = shape(operation.operands[j]); known != nullptr) {
          asked_.assign(side_.size(), false);
          answer(operation.operands[k], wanted(operation, k, operation.operands[j], known->sizes));
          break;
        }
    }
  }

  // The sizes that operand k of the operation should have, given another operand.
  Sizes wanted(const Operation& operation, std::size_t k, Operand beside, const Sizes& known) const {
    const std::size_t rank = known.size();
    Sizes sizes(rank, kOpen);
    switch (operation.verb) {
      case Verb::matmul:
        if (rank >= 2) sizes[k == 1 ? rank - 2 : rank - 1] = known[k == 1 ? rank - 1 : rank - 2];
        return sizes;
      case Verb::linear:
        if (rank == 3) sizes[2] = known[2];
        return sizes;
      case Verb::conv2d:
        if (rank != 4) return sizes;
        if (k == 1) sizes[0] = channels_upstream(beside, known[1]);
        if (k == 0) sizes[1] = known[1];
        return sizes;
      case Verb::concat:
        sizes = known;
        if (static_cast<std::size_t>(operation.details.axis) < rank)
          sizes[static_cast<std::size_t>(operation.details.axis)] = kOpen;
        return sizes;
      case Verb::ewadd:
      case Verb::ewmul:
      case Verb::sub: return known;
      default: return {};
    }
  }

  std::int64_t channels_upstream(Operand operand, std::int64_t otherwise) const {
    while (operand.operation >= 0) {
      const Operation& operation = side_[static_cast<std::size_t>(operand.operation)];
      if (operation.operands.empty()) return otherwise;
      operand = operation.operands[0];
    }
    const Shape& input = inputs_[static_cast<std::size_t>(operand.result)];
    return input.rank() == 4 ? input.sizes[1] : otherwise;
  }

  // Propagates sizes to the constants behind an open value, through operations that keep sizes.
  void answer(Operand operand, Sizes sizes) {
    if (operand.operation < 0 || shape(operand) != nullptr) return;
    const auto k = static_cast<std::size_t>(operand.operation);
    if (asked_[k]) return;
    asked_[k] = true;
    Operation& operation = side_[k];
    if (is_constant(operation.verb)) {
      settle(operation, sizes);
    } else if (operation.verb == Verb::transpose) {
      Sizes before(sizes.size(), kOpen);
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        const std::size_t from = operation.details.order.empty()
                                     ? sizes.size() - 1 - d
                                     : static_cast<std::size_t>(operation.details.order[d]);
        if (d < operation.details.order.size() || operation.details.order.empty())
          if (from < before.size()) before[from] = sizes[d];
      }
      answer(operation.operands[0], before);
    } else if (operation.verb == Verb::concat) {
      const auto axis = static_cast<std::size_t>(operation.details.axis);
      if (axis < sizes.size()) sizes[axis] = kOpen;
      for (const Operand inner : operation.operands) answer(inner, sizes);
    } else {
      for (const Operand inner : operation.operands) answer(inner, sizes);
    }
    look(k);
  }

  // Identities are square and pools have one input channel, so one size suffices; const_one has any
  // shape.
  static void settle(Operation& operation, const Sizes& sizes) {
    const auto first = [&](std::initializer_list<std::size_t> dims) {
      for (const std::size_t d : dims)
        if (d < sizes.size() && sizes[d] != kOpen) return sizes[d];
      return kOpen;
    };
    Details& details = operation.details;
    const std::int64_t rows = std::max(details.kernel[0], 1), columns = std::max(details.kernel[1], 1);
    if (operation.verb == Verb::const_one) {
      if (std::ranges::find(sizes, kOpen) == sizes.end()) details.sizes = sizes;
      return;
    }
    const std::int64_t size = operation.verb == Verb::const_pool ? first({0}) : first({0, 1});
    if (size == kOpen) return;
    if (operation.verb == Verb::const_eye) details.sizes = {size, size};
    if (operation.verb == Verb::const_conv_id) details.sizes = {size, size, rows, columns};
    if (operation.verb == Verb::const_pool) details.sizes = {size, 1, rows, columns};
  }

  Sizes fallback(const Operation& operation) const {
    const std::size_t rank = operation.verb == Verb::const_eye ? 2 : 4;
    for (const Shape& input : inputs_)
      if (input.rank() == rank)
        return operation.verb == Verb::const_one ? input.sizes : Sizes{input.sizes[1]};
    return {};
  }

  std::vector<Operation> side_;
  std::span<const Shape> inputs_;
  std::vector<std::vector<Shape>> shapes_;
  std::vector<bool> asked_;  // operations visited by the current propagation
};

}  // namespace

Result<std::vector<Operation>> size_constants(std::span<const Operation> side,
                                              std::span<const Shape> inputs) {
  return Context(side, inputs).size();
}

}  // namespace weft::equation
