#include "weft/rules/equation/algebra.h"

#include <array>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/equation/lower_operation.h"
#include "weft/rules/equation/typing.h"

namespace weft::equation {
namespace {

// Larger sizes are rejected, so that no sum or product here overflows 64 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

// The `Sizes` of typing.h for integers.
class WholeSizes {
 public:
  using Size = std::int64_t;

  Size number(std::int64_t value) const { return value; }
  Size plus(Size a, Size b) const { return std::min(a + b, kLargestSize); }
  Size minus(Size a, Size b) const { return a - b; }
  Size times(Size a, std::int32_t b) const { return std::min(a * b, kLargestSize); }

  Status same(Size a, Size b, std::string_view what) const {
    if (a == b) return {};
    return user_error(fmt::format("{} must be the same in both operands: {}, {}", what, a, b));
  }
  Status at_least(Size a, Size b, std::string_view what) const {
    if (a >= b) return {};
    return user_error(fmt::format("{} must be at least {}, found {}", what, b, a));
  }
  Result<Size> over(Size a, std::int32_t b, std::string_view what) const {
    if (b >= 1 && a % b == 0) return a / b;
    return user_error(fmt::format("{} does not divide the size: {}, {}", what, b, a));
  }
  Result<Size> windows(Size size, Size window, std::int32_t stride, bool same_padding) const {
    if (window < 1 || stride < 1)
      return user_error(fmt::format("window and stride must be at least 1, found {} and {}", window, stride));
    const Size count = windows_along(size, window, stride, same_padding).count;
    if (count < 1) return user_error(fmt::format("a window of {} does not fit a size of {}", window, size));
    return count;
  }
  Status grouped(Size channels, Size inputs, Size outputs) const {
    if (inputs < 1 || channels % inputs != 0)
      return user_error(
          fmt::format("the weight's channels do not divide the image's: {}, {}", inputs, channels));
    const Size groups = channels / inputs;
    if (outputs % groups == 0) return {};
    return user_error(
        fmt::format("groups do not divide the outputs: {} groups, {} outputs", groups, outputs));
  }
  bool agree(std::span<const Size> a, std::span<const Size> b) const { return std::ranges::equal(a, b); }
  bool inside(Size begin, Size place, Size end) const { return begin < place && place < end; }
  const std::vector<Size>& constant(const Operation& operation) const { return operation.details.sizes; }
};

Status check_sizes(std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    std::int64_t room = kMaxRuleElements;
    for (const std::int64_t size : shape.sizes) {
      if (size < 1) return user_error(fmt::format("a size must be at least 1, found {}", size));
      room /= size;
    }
    if (room < 1)
      return user_error(
          fmt::format("a value is too large to judge a rule on: more than {} elements", kMaxRuleElements));
  }
  return {};
}

Result<std::vector<Shape>> infer_local(const Operation& operation, std::span<const Shape> operands) {
  WholeSizes sizes;
  WEFT_TRY(results, Typing<WholeSizes>(operation, operands, sizes).type());
  WEFT_TRY_STATUS(check_sizes(results));
  return results;
}

using Key = std::vector<std::int64_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t state = 0x9e3779b97f4a7c15u;
    for (const std::int64_t word : key)
      state = multiply_fold(state ^ static_cast<std::uint64_t>(word), 0xc2b2ae3d27d4eb4fu) + 1;
    return mix(state);
  }
};

// Appends everything that the plan of an operation depends on, as words.
void write_key(const Operation& operation, std::span<const Shape> operands, Key& key) {
  const Details& d = operation.details;
  std::int64_t factor = 0;
  std::memcpy(&factor, &d.factor, sizeof factor);
  key.assign({static_cast<std::int64_t>(operation.verb), d.kernel[0], d.kernel[1], d.stride[0], d.stride[1],
              d.same_padding, d.then_relu, d.axis, d.parts, d.evenly, d.factor_is_one_over_ranks, d.spreads,
              factor});
  key.push_back(static_cast<std::int64_t>(d.order.size()));
  key.insert(key.end(), d.order.begin(), d.order.end());
  key.push_back(static_cast<std::int64_t>(d.sizes.size()));
  key.insert(key.end(), d.sizes.begin(), d.sizes.end());
  for (const Shape& shape : operands) {
    key.push_back(static_cast<std::int64_t>(shape.rank()));
    key.insert(key.end(), shape.sizes.begin(), shape.sizes.end());
    for (const auto& joints : shape.joints) {
      key.push_back(static_cast<std::int64_t>(joints.size()));
      key.insert(key.end(), joints.begin(), joints.end());
    }
  }
}

}  // namespace

struct Algebra::Prepared {
  struct Step {
    plan::NodeId node;
    std::vector<std::size_t> inputs;  // positions among the values
    std::vector<std::vector<std::int64_t>> sizes;
  };

  Lowered lowered;
  std::vector<Shape> results;
  std::vector<Step> steps;  // all nodes except the operands
  double flops = 0;
};

struct Algebra::Kept {
  std::unordered_map<Key, std::unique_ptr<Prepared>, KeyHash> prepared;
  Key key;
  // Values while a plan runs; reused, so that running allocates almost nothing.
  template <class T>
  struct Scratch {
    std::vector<ops::Tensor<T>> made;
    std::vector<const ops::Tensor<T>*> values, inputs;
  };
  Scratch<ops::Field> fields;
  Scratch<double> doubles;
  Scratch<ops::Rounded> rounded;

  template <class T>
  Scratch<T>& scratch() {
    if constexpr (std::is_same_v<T, double>)
      return doubles;
    else if constexpr (std::is_same_v<T, ops::Rounded>)
      return rounded;
    else
      return fields;
  }
};

Shape shape_of(std::vector<std::int64_t> sizes) {
  Shape shape{std::move(sizes), {}};
  shape.joints.resize(shape.sizes.size());
  return shape;
}

std::int64_t elements_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape.sizes) count *= size;
  return count;
}

Result<std::vector<Shape>> infer(const Operation& operation, std::span<const Shape> operands,
                                 std::int32_t ranks) {
  if (!is_communication(operation.verb)) return infer_local(operation, operands);
  if (operands.size() != 1 || ranks < 1)
    return user_error(fmt::format("{} takes one operand on a mesh, found {} on {} ranks",
                                  name(operation.verb), operands.size(), ranks));
  WEFT_TRY(shapes, infer_ranks(operation, std::vector<Shape>(static_cast<std::size_t>(ranks), operands[0])));
  for (const Shape& shape : shapes)
    if (shape != shapes[0])
      return user_error(fmt::format("{} slices a dim unevenly over {} ranks", name(operation.verb), ranks));
  return std::vector<Shape>{shapes[0]};
}

Algebra::Algebra() : kept_(std::make_unique<Kept>()) {}
Algebra::~Algebra() = default;
Algebra::Algebra(Algebra&&) noexcept = default;
Algebra& Algebra::operator=(Algebra&&) noexcept = default;

Result<const Algebra::Prepared*> Algebra::prepare(const Operation& operation,
                                                  std::span<const Shape> operands) {
  WEFT_CHECK(!is_communication(operation.verb));
  write_key(operation, operands, kept_->key);
  if (const auto found = kept_->prepared.find(kept_->key); found != kept_->prepared.end())
    return found->second.get();

  auto made = std::make_unique<Prepared>();
  WEFT_TRY(results, infer_local(operation, operands));
  WEFT_TRY(lowered, lower(operation, operands, results));
  made->lowered = std::move(lowered);
  made->results = std::move(results);
  const plan::Graph& graph = made->lowered.graph;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (&node.op() == &ops::input()) continue;
    Prepared::Step step{node.id(), {}, {}};
    for (std::size_t i = 0; i < node.input_count(); ++i) step.inputs.push_back(node.input(i).value);
    for (std::size_t k = 0; k < node.result_count(); ++k)
      step.sizes.push_back(ops::sizes_of(node.result_type(k).dims));
    made->steps.push_back(std::move(step));
    made->flops += node.op().work(node).flops;
  }
  const Prepared* prepared = made.get();
  kept_->prepared.emplace(kept_->key, std::move(made));
  return prepared;
}

std::size_t Algebra::plan_count() const { return kept_->prepared.size(); }

const std::vector<Shape>& Algebra::results(const Prepared& prepared) const { return prepared.results; }

const plan::Graph& Algebra::plan(const Prepared& prepared) const { return prepared.lowered.graph; }
double Algebra::flops(const Prepared& prepared) const { return prepared.flops; }

template <class T>
void Algebra::run(const Prepared& prepared, std::span<const ops::Tensor<T>* const> operands,
                  std::span<ops::Tensor<T>> results, const ops::Numbers<T>& numbers) const {
  const plan::Graph& graph = prepared.lowered.graph;
  auto& [made, values, inputs] = kept_->template scratch<T>();
  if (made.size() < graph.value_count()) made.resize(graph.value_count());
  values.assign(graph.value_count(), nullptr);
  for (std::size_t k = 0; k < operands.size(); ++k) values[prepared.lowered.operands[k].value] = operands[k];
  for (const Prepared::Step& step : prepared.steps) {
    const plan::NodeView node = graph.view(step.node);
    inputs.clear();
    for (const std::size_t input : step.inputs) inputs.push_back(values[input]);
    const std::size_t first = node.result(0).value;
    for (std::size_t k = 0; k < step.sizes.size(); ++k) {
      made[first + k].sizes = step.sizes[k];
      made[first + k].data.assign(static_cast<std::size_t>(node.result_type(k).elements()), T());
      values[first + k] = &made[first + k];
    }
    ops::Evaluation<T> at(node, inputs, std::span(made).subspan(first, step.sizes.size()), numbers);
    ops::operator_of(node).reference(at);
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    const ops::Tensor<T>& value = *values[prepared.lowered.results[k].value];
    results[k].sizes = prepared.results[k].sizes;
    results[k].data = value.data;
  }
}

template void Algebra::run(const Prepared&, std::span<const ops::Tensor<ops::Field>* const>,
                           std::span<ops::Tensor<ops::Field>>, const ops::Numbers<ops::Field>&) const;
template void Algebra::run(const Prepared&, std::span<const ops::Tensor<ops::Rounded>* const>,
                           std::span<ops::Tensor<ops::Rounded>>, const ops::Numbers<ops::Rounded>&) const;
template void Algebra::run(const Prepared&, std::span<const ops::Tensor<double>* const>,
                           std::span<ops::Tensor<double>>, const ops::Numbers<double>&) const;

}  // namespace weft::equation
