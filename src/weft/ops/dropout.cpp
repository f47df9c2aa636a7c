// dropout: zeroes a random share of the elements and scales up the rest.
//
//   y = x / (1 - rate)  where  uniform(step, stream, place of the element) >= rate,  else 0
//
// The mask depends on nothing but the training step, the stream (a number for each dropout of a
// model) and the element's place in the whole tensor, so the gradient draws the same mask again and
// slices agree with the whole, if they know their place.
#include <array>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/ops/build.h"
#include "weft/ops/loops.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kAttributes = {
    {{"rate", AttributeKind::real}, {"stream", AttributeKind::integer, false}}};
constexpr std::size_t kRate = 0, kStream = 1;

class Dropout final : public OperatorOf<Dropout> {
 public:
  std::string_view name() const override { return "dropout"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAttributes; }
  std::size_t fewest_inputs() const override { return 2; }
  std::size_t most_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect_step(node, 1));
    const double rate = node.real(kRate);
    if (!(rate >= 0 && rate < 1))
      return user_error(fmt::format("rate must be at least 0 and below 1, found {}", rate));
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [](const plan::Loop&) { return kPlaced; });
  }

  // Ten rounds of Philox make four elements; with the scaling that is about a dozen operations each.
  plan::Work work(const NodeView& node) const override { return flops_each(node, 12); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value,
             add_dropout(g.graph, g.of_result(), node.input(1), node.real(kRate), node.integer(kStream)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const auto step = static_cast<std::uint64_t>(at.numbers.to_integer(at.input(1).data[0]));
    const auto stream = static_cast<std::uint64_t>(at.node().integer(kStream));
    const double rate = at.node().real(kRate);
    const T kept = at.numbers.from(1 - rate);
    for (std::size_t place = 0; place < at.input(0).data.size(); ++place)
      if (static_cast<double>(uniform_at(step, stream, place)) >= rate)
        at.result(0).data[place] = at.numbers.divide(at.input(0).data[place], kept);
  }
};

}  // namespace

const Operator& dropout() {
  static const Dropout op;
  return op;
}

}  // namespace weft::ops
