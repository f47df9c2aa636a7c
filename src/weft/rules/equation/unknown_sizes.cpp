#include "weft/rules/equation/unknown_sizes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/rules/equation/lower_operation.h"
#include "weft/rules/equation/typing.h"

namespace weft::equation {
namespace {

constexpr std::int32_t kLargestQuotient = 1 << 16;  // stays within 32 bits when multiplied by any `parts`

// Larger sizes are rejected when tried; the limit here keeps arithmetic within 64 bits.
constexpr std::int64_t kLargestFactor = std::int64_t{1} << 30;
std::int64_t bounded(std::int64_t factor) { return std::clamp(factor, -kLargestFactor, kLargestFactor); }

// The `Sizes` of typing.h for unknowns: fails only if no sizes can satisfy the condition.
class UnknownSizes {
 public:
  using Size = Linear;
  using Kind = SizeCondition::Kind;

  explicit UnknownSizes(SizeConditions& conditions) : conditions_(conditions) {}

  Linear fresh(std::int64_t example) {
    conditions_.example.push_back(std::max<std::int64_t>(example, 1));
    return Linear{0, {{conditions_.unknowns++, 1}}};
  }
  Linear number(std::int64_t value) const { return Linear{value, {}}; }
  Linear plus(const Linear& a, const Linear& b) const { return a + b; }
  Linear minus(const Linear& a, const Linear& b) const { return a - b; }
  Linear times(const Linear& a, std::int32_t b) const { return a * b; }

  Status same(const Linear& a, const Linear& b, std::string_view what) {
    if (a.terms.empty() && b.terms.empty() && a.constant != b.constant)
      return user_error(
          fmt::format("{} must be the same in both operands: {}, {}", what, a.constant, b.constant));
    // Slices are equal if the wholes are; stated this way, sizes need not be divisible.
    const auto left = sliced_.find(a), right = sliced_.find(b);
    if (left != sliced_.end() && right != sliced_.end() && left->second.second == right->second.second)
      return same(left->second.first, right->second.first, what);
    if (a != b) conditions_.all.push_back({.kind = Kind::equal, .a = a, .b = b, .c = {}});
    return {};
  }
  Status at_least(const Linear& a, const Linear& b, std::string_view what) {
    if (a.terms.empty() && b.terms.empty() && a.constant < b.constant)
      return user_error(fmt::format("{} must be at least {}, found {}", what, b.constant, a.constant));
    conditions_.all.push_back({.kind = Kind::at_least, .a = a, .b = b, .c = {}});
    return {};
  }
  Result<Linear> over(const Linear& a, std::int32_t parts, std::string_view what) {
    if (parts < 1) return user_error(fmt::format("{} must be at least 1, found {}", what, parts));
    // Express a quotient of a quotient as one of the whole, which a guard can state.
    const auto inner = quotients_.find(a);
    const Linear& whole = inner == quotients_.end() ? a : inner->second.first;
    const std::int32_t all = inner == quotients_.end() ? parts : parts * inner->second.second;
    conditions_.all.push_back({.kind = Kind::divides, .a = whole, .b = {}, .c = {}, .parts = all});
    bool divisible = a.constant % parts == 0;
    for (const auto& [unknown, factor] : a.terms) divisible &= factor % parts == 0;
    if (divisible) {
      Linear quotient = a;
      quotient.constant /= parts;
      for (auto& [unknown, factor] : quotient.terms) factor /= parts;
      return quotient;
    }
    const Linear quotient = fresh(a.at(conditions_.example) / parts);
    WEFT_TRY_STATUS(same(quotient * parts, a, what));
    if (all <= kLargestQuotient) quotients_[quotient] = {whole, all};
    return quotient;
  }
  Result<Linear> windows(const Linear& size, const Linear& window, std::int32_t stride, bool same_padding) {
    if (stride < 1) return user_error(fmt::format("stride must be at least 1, found {}", stride));
    if (stride == 1 && same_padding) return size;
    const Linear count =
        fresh(windows_along(std::max<std::int64_t>(size.at(conditions_.example), 1),
                            std::max<std::int64_t>(window.at(conditions_.example), 1), stride, same_padding)
                  .count);
    conditions_.all.push_back({.kind = Kind::windows,
                               .a = count,
                               .b = window,
                               .c = size,
                               .stride = stride,
                               .same_padding = same_padding});
    return count;
  }
  Status grouped(const Linear& channels, const Linear& inputs, const Linear& outputs) {
    conditions_.all.push_back({.kind = Kind::grouped, .a = channels, .b = inputs, .c = outputs});
    return {};
  }
  bool agree(std::span<const Linear> a, std::span<const Linear> b) const { return a.size() == b.size(); }
  bool inside(const Linear& begin, const Linear& place, const Linear& end) const {
    const auto& at = conditions_.example;
    return begin.at(at) < place.at(at) && place.at(at) < end.at(at);
  }
  // Channel counts of a constant are unknowns; its kernel is fixed.
  std::vector<Linear> constant(const Operation& operation) {
    std::vector<Linear> sizes;
    for (const std::int64_t size : operation.details.sizes) sizes.push_back(number(size));
    if (operation.verb == Verb::const_one) {
      for (Linear& size : sizes) size = fresh(size.constant);
    } else {
      sizes[0] = fresh(sizes[0].constant);
      if (operation.verb != Verb::const_pool) sizes[1] = sizes[0];
    }
    return sizes;
  }

  Linear slice(const Linear& whole, std::int32_t parts) {
    if (parts == 1) return whole;
    for (const auto& [part, origin] : sliced_)
      if (origin == std::pair(whole, parts)) return part;
    const Linear part = fresh(whole.at(conditions_.example) / parts);
    sliced_[part] = {whole, parts};
    conditions_.all.push_back({.kind = Kind::slice, .a = part, .b = whole, .c = {}, .parts = parts});
    return part;
  }
  Linear gather(const Linear& part, std::int32_t parts) {
    const auto found = sliced_.find(part);
    if (found == sliced_.end() || found->second.second % parts != 0) return part * parts;
    const auto [whole, of] = found->second;
    return slice(whole, of / parts);
  }

 private:
  SizeConditions& conditions_;
  // part -> (whole, number of parts)
  std::map<Linear, std::pair<Linear, std::int32_t>> sliced_, quotients_;
};

using UnknownShape = ShapeOf<Linear>;

bool is_unity(Verb verb) {
  return verb == Verb::linear || verb == Verb::partition || verb == Verb::combine ||
         verb == Verb::replicate || verb == Verb::reduce;
}

// Adds the conventions of a rule's origin, independent of its operations. In Unity's rules the
// first of three dims counts replicas, and inputs have one replica. On a mesh no dim is smaller
// than the number of ranks, since plans have no empty slices.
void add_conventions(const Equation& equation, std::int32_t ranks, SizeConditions& conditions) {
  const auto unity = [](const Operation& operation) { return is_unity(operation.verb); };
  const bool replicas =
      std::ranges::any_of(equation.source, unity) || std::ranges::any_of(equation.target, unity);
  for (std::size_t k = 0; k < equation.inputs.size(); ++k) {
    const auto& dims = conditions.dims[k];
    const auto unknown = [&](std::size_t d) { return Linear{0, {{dims[d], 1}}}; };
    if (replicas && dims.size() == 3 && equation.inputs[k].example[0] == 1)
      conditions.all.push_back(
          {.kind = SizeCondition::Kind::equal, .a = unknown(0), .b = Linear{1, {}}, .c = {}});
    for (std::size_t d = 0; equation.distributed() && d < dims.size(); ++d)
      conditions.all.push_back(
          {.kind = SizeCondition::Kind::at_least, .a = unknown(d), .b = Linear{ranks, {}}, .c = {}});
  }
}

Result<UnknownShape> type_between_ranks(const Operation& operation, UnknownShape shape, std::int32_t ranks,
                                        UnknownSizes& sizes) {
  const Details& d = operation.details;
  const auto members = d.groups.empty() ? ranks : static_cast<std::int32_t>(d.groups[0].size());
  for (const std::int32_t dim : {d.axis, operation.verb == Verb::all_to_all ? d.other_axis : d.axis})
    if (dim < 0 || static_cast<std::size_t>(dim) >= std::max<std::size_t>(shape.rank(), 1) || members < 1)
      return user_error(fmt::format("{}: dim {} is not among {}", name(operation.verb), dim, shape.rank()));
  const auto axis = static_cast<std::size_t>(d.axis), other = static_cast<std::size_t>(d.other_axis);
  switch (operation.verb) {
    case Verb::reduce_scatter:
    case Verb::shard:
      if (axis < shape.rank()) shape.sizes[axis] = sizes.slice(shape.sizes[axis], members);
      break;
    case Verb::all_gather:
      if (axis < shape.rank()) shape.sizes[axis] = sizes.gather(shape.sizes[axis], members);
      break;
    case Verb::all_to_all:
      if (std::max(axis, other) < shape.rank()) {
        shape.sizes[axis] = sizes.slice(shape.sizes[axis], members);
        shape.sizes[other] = sizes.gather(shape.sizes[other], members);
      }
      break;
    default: break;
  }
  return shape;
}

}  // namespace

std::int64_t Linear::at(std::span<const std::int64_t> values) const {
  std::int64_t total = constant;
  for (const auto& [unknown, factor] : terms) total += factor * values[static_cast<std::size_t>(unknown)];
  return total;
}

Linear operator+(const Linear& a, const Linear& b) {
  Linear sum{bounded(a.constant + b.constant), {}};
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    if (right == b.terms.end() || (left != a.terms.end() && left->first < right->first)) {
      sum.terms.push_back(*left++);
    } else if (left == a.terms.end() || right->first < left->first) {
      sum.terms.push_back(*right++);
    } else {
      if (left->second + right->second != 0)
        sum.terms.emplace_back(left->first, bounded(left->second + right->second));
      ++left, ++right;
    }
  }
  return sum;
}

Linear operator-(const Linear& a, const Linear& b) { return a + b * -1; }

Linear operator*(const Linear& a, std::int64_t factor) {
  Linear product{bounded(a.constant * factor), a.terms};
  for (auto& term : product.terms) term.second = bounded(term.second * factor);
  if (factor == 0) product.terms.clear();
  return product;
}

bool SizeCondition::holds(std::span<const std::int64_t> values) const {
  const std::int64_t left = a.at(values), right = b.at(values);
  switch (kind) {
    case Kind::equal: return left == right;
    case Kind::at_least: return left >= right;
    case Kind::grouped: {
      if (left < 1 || right < 1 || left % right != 0) return false;
      return c.at(values) % (left / right) == 0;
    }
    case Kind::windows: {
      const std::int64_t size = c.at(values);
      return size >= 1 && right >= 1 && left >= 1 &&
             windows_along(size, right, stride, same_padding).count == left;
    }
    case Kind::slice: return right >= parts && left == right / parts;
    case Kind::divides: return left >= 1 && left % parts == 0;
  }
  return false;
}

bool SizeCondition::only_below(std::int32_t limit) const {
  const auto below = [&](const Linear& size) {
    return std::ranges::all_of(size.terms, [&](const auto& term) { return term.first < limit; });
  };
  return below(a) && below(b) && below(c);
}

std::vector<SizeCondition> conditions_on_inputs(const SizeConditions& conditions) {
  std::vector<SizeCondition> kept;
  for (const SizeCondition& condition : conditions.all)
    if (condition.only_below(conditions.inputs)) kept.push_back(condition);
  return kept;
}

std::vector<std::int64_t> SizeConditions::values_of(const InputSizes& sizes) const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(unknowns), 1);
  for (std::size_t k = 0; k < dims.size(); ++k)
    for (std::size_t d = 0; d < dims[k].size(); ++d)
      values[static_cast<std::size_t>(dims[k][d])] = sizes[k][d];
  return values;
}

InputSizes SizeConditions::sizes_at(std::span<const std::int64_t> values) const {
  InputSizes sizes(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k)
    for (const std::int32_t unknown : dims[k]) sizes[k].push_back(values[static_cast<std::size_t>(unknown)]);
  return sizes;
}

Result<SizeConditions> conditions_of(const Equation& equation, Which which, std::int32_t ranks) {
  SizeConditions conditions;
  UnknownSizes sizes(conditions);
  std::vector<Shape> examples;
  std::vector<UnknownShape> inputs;
  for (const EquationInput& input : equation.inputs) {
    examples.push_back(shape_of(input.example));
    UnknownShape shape;
    conditions.dims.emplace_back();
    for (const std::int64_t size : input.example) {
      conditions.dims.back().push_back(conditions.unknowns);
      shape.sizes.push_back(sizes.fresh(size));
    }
    inputs.push_back(std::move(shape));
  }
  conditions.inputs = conditions.unknowns;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    inputs[k].joints.resize(inputs[k].rank());
    const auto dim = static_cast<std::size_t>(equation.inputs[k].sharded_dim);
    if (equation.inputs[k].holding == Holding::sharded && dim < inputs[k].rank())
      inputs[k].sizes[dim] = sizes.slice(inputs[k].sizes[dim], ranks);
  }
  if (which == Which::source) add_conventions(equation, ranks, conditions);
  const std::vector<Operation>& side = which == Which::source ? equation.source : equation.target;
  WEFT_TRY(operations, size_constants(side, examples));
  std::vector<std::vector<UnknownShape>> made;
  for (const Operation& operation : operations) {
    std::vector<UnknownShape> operands;
    for (const Operand operand : operation.operands) {
      const auto result = static_cast<std::size_t>(operand.result);
      operands.push_back(operand.operation < 0 ? inputs[result]
                                               : made[static_cast<std::size_t>(operand.operation)][result]);
    }
    if (is_communication(operation.verb)) {
      WEFT_TRY(shape, type_between_ranks(operation, operands[0], ranks, sizes));
      made.push_back({std::move(shape)});
    } else {
      WEFT_TRY(shapes, Typing<UnknownSizes>(operation, operands, sizes).type());
      made.push_back(std::move(shapes));
    }
  }
  return conditions;
}

std::string print(const SizeCondition& condition, const SizeConditions& conditions,
                  const Equation& equation) {
  const auto unknown = [&](std::int32_t which) -> std::string {
    for (std::size_t k = 0; k < conditions.dims.size(); ++k)
      for (std::size_t d = 0; d < conditions.dims[k].size(); ++d)
        if (conditions.dims[k][d] == which) return fmt::format("size({}, {})", equation.inputs[k].name, d);
    return {};
  };
  bool speakable = true;
  const auto linear = [&](const Linear& size) {
    std::vector<std::string> terms;
    for (const auto& [which, factor] : size.terms) {
      const std::string text = unknown(which);
      if (text.empty() || factor < 0) speakable = false;
      terms.push_back(factor == 1 ? text : fmt::format("{} * {}", factor, text));
    }
    if (size.constant < 0) speakable = false;
    if (size.constant != 0 || terms.empty()) terms.push_back(fmt::format("{}", size.constant));
    return fmt::format("{}", fmt::join(terms, " + "));
  };
  std::string text;
  switch (condition.kind) {
    case SizeCondition::Kind::equal:
      text = fmt::format("{} = {}", linear(condition.a), linear(condition.b));
      break;
    case SizeCondition::Kind::at_least:
      text = fmt::format("{} >= {}", linear(condition.a), linear(condition.b));
      break;
    case SizeCondition::Kind::divides:
      text = fmt::format("divides({}, {})", condition.parts, linear(condition.a));
      break;
    case SizeCondition::Kind::grouped:
      text = fmt::format("divides({}, {})", linear(condition.b), linear(condition.a));
      break;
    default: speakable = false;
  }
  return speakable ? text : std::string();
}

}  // namespace weft::equation
