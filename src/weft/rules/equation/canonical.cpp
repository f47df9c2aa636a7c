#include "weft/rules/equation/canonical.h"

#include <algorithm>
#include <span>
#include <vector>

namespace weft::equation {
namespace {

std::uint64_t spelling(const Operation& operation) {
  const Operation plain = bare(operation);
  const Details& d = plain.details;
  Hasher hasher;
  hasher.number(static_cast<std::uint64_t>(plain.verb));
  for (const std::int32_t number :
       {d.kernel[0], d.kernel[1], d.stride[0], d.stride[1], d.axis, d.other_axis, d.parts, d.root, d.shift})
    hasher.number(static_cast<std::uint64_t>(number));
  hasher.number(d.same_padding).number(d.then_relu).number(d.evenly).number(d.factor_is_one_over_ranks);
  hasher.number(static_cast<std::uint64_t>(d.kind)).real(d.factor).number(d.order.size());
  for (const std::int32_t dim : d.order) hasher.number(static_cast<std::uint64_t>(dim));
  for (const auto& group : d.groups) {
    hasher.number(group.size());
    for (const std::int32_t rank : group) hasher.number(static_cast<std::uint64_t>(rank));
  }
  return hasher.digest().high;
}

// One serialization of an equation: it depends on which side comes first, the order of the outputs,
// and one bit per commutative operation that says whether its operands are swapped.
class Spelling {
 public:
  Spelling(const Equation& equation, std::uint64_t swaps) : equation_(equation), swaps_(swaps) {
    numbers_.resize(equation.inputs.size(), 0);
  }

  std::vector<std::uint64_t> write(bool target_first, std::span<const std::size_t> outputs) {
    for (const std::size_t k : outputs) {
      const auto& [source, target] = equation_.outputs[k];
      write(target_first ? equation_.target : equation_.source, target_first ? target : source);
      write(target_first ? equation_.source : equation_.target, target_first ? source : target);
    }
    return std::move(words_);
  }

  std::int32_t commutative_met() const { return met_; }

 private:
  void write(std::span<const Operation> side, Operand operand) {
    if (operand.operation < 0) {
      std::uint64_t& number = numbers_[static_cast<std::size_t>(operand.result)];
      if (number == 0) number = ++inputs_;
      const EquationInput& input = equation_.inputs[static_cast<std::size_t>(operand.result)];
      words_.push_back(number << 8 | static_cast<std::uint64_t>(input.holding) << 4 |
                       static_cast<std::uint64_t>(input.sharded_dim & 15));
      return;
    }
    const Operation& operation = side[static_cast<std::size_t>(operand.operation)];
    if (operation.verb == Verb::identity) return write(side, operation.operands[0]);
    words_.push_back(spelling(operation) + static_cast<std::uint64_t>(operand.result));
    words_.push_back(operation.operands.size());
    const bool swap = is_commutative(operation.verb) && met_ < 64 && (swaps_ >> met_++ & 1) != 0;
    if (swap) {
      write(side, operation.operands[1]);
      write(side, operation.operands[0]);
    } else {
      for (const Operand inner : operation.operands) write(side, inner);
    }
  }

  const Equation& equation_;
  std::uint64_t swaps_;
  std::int32_t met_ = 0;
  std::uint64_t inputs_ = 0;
  std::vector<std::uint64_t> numbers_, words_;
};

std::size_t size_of_tree(std::span<const Operation> side, Operand operand) {
  if (operand.operation < 0) return 1;
  std::size_t size = 1;
  for (const Operand inner : side[static_cast<std::size_t>(operand.operation)].operands)
    size += size_of_tree(side, inner);
  return size;
}

// Sides are written out as trees. With more commutative operations than this, some serializations
// of the same rule remain distinct.
constexpr std::int32_t kMostSwaps = 10;

}  // namespace

bool is_commutative(Verb verb) { return verb == Verb::ewadd || verb == Verb::ewmul; }

bool is_alike(Verb verb, const Details& details, bool operands_alike) {
  switch (verb) {
    case Verb::all_reduce:
    case Verb::all_gather: return details.groups.empty();
    case Verb::broadcast: return true;
    case Verb::shard:
    case Verb::reduce_scatter:
    case Verb::all_to_all: return false;
    default: return operands_alike;
  }
}

Operation bare(const Operation& operation) {
  Operation plain{operation.verb, {}, operation.details};
  plain.details.materialize = false;
  plain.details.sizes.clear();
  plain.details.evenly = true;  // at a concat's joint, a split that may cut evenly cuts there too
  if (plain.verb == Verb::conv2d) plain.details.kernel = {0, 0};
  if (plain.details.order == std::vector<std::int32_t>{1, 0}) plain.details.order.clear();
  return plain;
}

std::vector<std::int64_t> local_sizes(const EquationInput& input, std::int32_t ranks) {
  std::vector<std::int64_t> sizes = input.example;
  const auto dim = static_cast<std::size_t>(input.sharded_dim);
  if (input.holding == Holding::sharded && dim < sizes.size() && ranks > 0) sizes[dim] /= ranks;
  return sizes;
}

std::size_t size_of(const Equation& equation) {
  std::size_t size = 0;
  for (const auto& [source, target] : equation.outputs)
    size += size_of_tree(equation.source, source) + size_of_tree(equation.target, target);
  return size;
}

Digest canonical_key(const Equation& equation) {
  std::vector<std::size_t> outputs(equation.outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = k;
  std::vector<std::uint64_t> best;
  do {
    for (const bool target_first : {false, true}) {
      std::int32_t met = 0;
      for (std::uint64_t swaps = 0; swaps < std::uint64_t{1} << std::min(met, kMostSwaps); ++swaps) {
        Spelling spelling(equation, swaps);
        auto words = spelling.write(target_first, outputs);
        met = spelling.commutative_met();
        if (best.empty() || words < best) best = std::move(words);
      }
    }
  } while (outputs.size() <= 3 && std::next_permutation(outputs.begin(), outputs.end()));
  Hasher hasher;
  for (const std::uint64_t word : best) hasher.number(word);
  hasher.number(equation.distributed());
  return hasher.digest();
}

}  // namespace weft::equation
