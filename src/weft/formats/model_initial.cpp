#include "weft/formats/model_initial.h"

#include <cmath>
#include <optional>

namespace weft::formats {
namespace {

using Operation = ModelOperation;

ops::Initial scaled(std::int64_t fan_in) { return {"normal", 0, 1 / std::sqrt(static_cast<double>(fan_in))}; }

constexpr ops::Initial kAroundOne = {"uniform", 0.5, 1.5}, kAroundZero = {"normal", 0, 0.1};

// The initial value that the node prefers for its operand; nothing if it has no preference.
std::optional<ops::Initial> wish(const ModelNode& node, std::size_t operand, const ModelShape& shape) {
  switch (node.operation) {
    case Operation::conv2d: return scaled(shape[1] * shape[2] * shape[3]);
    case Operation::matmul: return scaled(operand == 0 ? shape.back() : shape[shape.size() - 2]);
    case Operation::layernorm: return operand == 1 ? kAroundOne : kAroundZero;
    case Operation::batchnorm: return operand == 1 || operand == 4 ? kAroundOne : kAroundZero;
    case Operation::add: return kAroundZero;
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<ops::Initial> initial_values(const ModelFile& file) {
  std::vector<ops::Initial> initial(file.values.size(), ops::Initial{"normal", 0, 1});
  // From the last reader to the first, so that the first reader's preference wins.
  for (std::size_t n = file.nodes.size(); n-- > 0;) {
    const ModelNode& node = file.nodes[n];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const std::uint32_t operand = node.operands[i];
      if (node.operation == Operation::transpose || node.operation == Operation::reshape)
        initial[operand] = initial[file.result(n)];
      else if (const auto wished = wish(node, i, file.shape(operand)))
        initial[operand] = *wished;
    }
  }
  return initial;
}

}  // namespace weft::formats
