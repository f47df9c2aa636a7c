// dropout: zeroes a random fraction of the elements and scales up the rest.
//
//   y = x / (1 - rate)  where  uniform(step, stream, position of the element) >= rate,  else 0
//
// The mask depends only on the training step, the stream (a number per dropout of a model) and the
// element's position in the whole tensor. So the gradient draws the same mask again, and slices
// agree with the whole if they know their position: `begin` and `whole`, see global_offset.h.
#include <array>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/global_offset.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sequences.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kDropoutAttributes = {
    {{"rate", AttributeKind::real},
     {"stream", AttributeKind::integer, false},
     {"begin", AttributeKind::integer, false},
     {"whole", AttributeKind::word, false, 0, ""}}};
constexpr std::size_t kDropoutRate = 0, kDropoutStream = 1, kDropoutBegin = 2, kDropoutWhole = 3;

class Dropout final : public OperatorOf<Dropout> {
 public:
  std::string_view name() const override { return "dropout"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kDropoutAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect_step(node, 1));
    const double rate = node.real(kDropoutRate);
    if (!(rate >= 0 && rate < 1))
      return user_error(fmt::format("rate must be at least 0 and below 1, found {}", rate));
    Result<GlobalOffset> place =
        read_global_offset(node.input_type(0), node.integer(kDropoutBegin), node.word(kDropoutWhole));
    if (!place.ok()) return std::move(place).error();
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [](const plan::Loop&) { return kPlaced; });
  }

  // Ten rounds of Philox make four elements. With the scaling that is about a dozen operations per
  // element.
  plan::Work work(const NodeView& node) const override { return flops_each(node, 12); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const std::initializer_list<plan::ValueId> operands = {g.of_result(), node.input(1)};
    const std::array<plan::AttributeValue, 4> attributes = {
        node.real(kDropoutRate), node.integer(kDropoutStream), node.integer(kDropoutBegin),
        node.symbol(kDropoutWhole)};
    WEFT_TRY(value, g.graph.add_value(dropout(), operands, attributes));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const auto step = static_cast<std::uint64_t>(at.numbers.to_integer(at.input(1).data[0]));
    const auto stream = static_cast<std::uint64_t>(at.node().integer(kDropoutStream));
    const double rate = at.node().real(kDropoutRate);
    const T kept = at.numbers.from(1 - rate);
    const NodeView& node = at.node();
    const GlobalOffset whole =
        read_global_offset(node.input_type(0), node.integer(kDropoutBegin), node.word(kDropoutWhole)).value();
    Walk walk(sizes_of(node.input_type(0).dims));
    walk.track(whole.strides);
    std::size_t i = 0;
    do {
      const auto place = static_cast<std::uint64_t>(whole.begin + walk.offset(0));
      if (at.numbers.keeps({step, stream, place, rate}))
        at.result(0).data[i] = at.numbers.divide(at.input(0).data[i], kept);
      ++i;
    } while (walk.next());
  }
};

}  // namespace

const Operator& dropout() {
  static const Dropout op;
  return op;
}

}  // namespace weft::ops
