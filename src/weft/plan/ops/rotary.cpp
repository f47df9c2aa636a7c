// rotary: rotates pairs of features by an angle that grows with the position.
//
//   angle = (begin + p) * base^(-2i/e)        p along `along`, e the size of `pairs`, i = 0 .. e/2-1
//   y[i]       = x[i] cos - x[i + e/2] sin
//   y[i + e/2] = x[i + e/2] cos + x[i] sin
//
// inverse=1 rotates in the opposite direction, which is also the gradient. A slice of positions
// must know where it starts: `begin`.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sequences.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 5> kRotaryAttributes = {
    {{"along", AttributeKind::index},
     {"pairs", AttributeKind::index},
     {"base", AttributeKind::real, false, 10000},
     {"inverse", AttributeKind::integer, false},
     {"begin", AttributeKind::integer, false}}};
constexpr std::size_t kRotaryAlong = 0, kRotaryPairs = 1, kRotaryBase = 2, kRotaryInverse = 3,
                      kRotaryBegin = 4;

class Rotary final : public OperatorOf<Rotary> {
 public:
  std::string_view name() const override { return "rotary"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kRotaryAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const std::array<Symbol, 2> wanted = {node.symbol(kRotaryAlong), node.symbol(kRotaryPairs)};
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY(found, pick(x.dims, wanted, node));
    if (found[1].size % 2 != 0)
      return user_error(fmt::format("index {} must have an even size to form pairs, found {}",
                                    node.text(wanted[1]), found[1].size));
    if (!(node.real(kRotaryBase) > 0))
      return user_error(fmt::format("base must be positive, found {}", node.real(kRotaryBase)));
    WEFT_TRY_STATUS(expect_between("inverse", node.integer(kRotaryInverse), 0, 1));
    WEFT_TRY_STATUS(expect_between("begin", node.integer(kRotaryBegin), 0, kLargestStep));
    return results.add(x);
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [&](const plan::Loop& loop) {
      return loop.index == node.symbol(kRotaryPairs)   ? kWhole
             : loop.index == node.symbol(kRotaryAlong) ? kPlaced
                                                       : kParallel;
    });
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, 3); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId dy = g.of_result();
    const std::array<plan::AttributeValue, 5> attributes = {
        node.symbol(kRotaryAlong), node.symbol(kRotaryPairs), node.real(kRotaryBase),
        1 - node.integer(kRotaryInverse), node.integer(kRotaryBegin)};
    WEFT_TRY(value, g.graph.add_value(rotary(), {&dy, 1}, attributes));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const plan::Type x = node.input_type(0);
    const auto along = static_cast<std::size_t>(x.position(node.symbol(kRotaryAlong)));
    const auto pairs = static_cast<std::size_t>(x.position(node.symbol(kRotaryPairs)));
    const std::int64_t half = x.dims[pairs].size / 2;

    std::vector<std::int64_t> sizes = sizes_of(x.dims);
    sizes[pairs] = half;
    const std::vector<std::int64_t> strides = strides_along(x, x.dims);
    Walk walk(sizes);
    walk.track(strides);
    do {
      const double power = -static_cast<double>(walk.at(pairs)) / static_cast<double>(half);
      const T angle = at.numbers.from(static_cast<double>(node.integer(kRotaryBegin) + walk.at(along)) *
                                      std::pow(node.real(kRotaryBase), power));
      const T cosine = at.numbers.apply(Function::cos, angle);
      const T sine = node.integer(kRotaryInverse) != 0 ? -at.numbers.apply(Function::sin, angle)
                                                       : at.numbers.apply(Function::sin, angle);
      const std::int64_t first = walk.offset(0), second = first + half * strides[pairs];
      const T x1 = at.input(0).data[first], x2 = at.input(0).data[second];
      at.result(0).data[first] = x1 * cosine - x2 * sine;
      at.result(0).data[second] = x2 * cosine + x1 * sine;
    } while (walk.next());
  }
};

}  // namespace

const Operator& rotary() {
  static const Rotary op;
  return op;
}

}  // namespace weft::ops
