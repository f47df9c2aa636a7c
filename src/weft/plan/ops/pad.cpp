// pad: zeros before and after a value along one index.
//
//   y[.., before + i, ..] = x[.., i, ..], elsewhere 0
#include <algorithm>
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kPadAttributes = {{{"along", AttributeKind::index},
                                                                {"before", AttributeKind::integer, false},
                                                                {"after", AttributeKind::integer, false}}};
constexpr std::size_t kPadAlong = 0, kPadBefore = 1, kPadAfter = 2;

class Pad final : public OperatorOf<Pad> {
 public:
  std::string_view name() const override { return "pad"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kPadAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const Symbol along = node.symbol(kPadAlong);
    WEFT_TRY(found, pick(x.dims, {&along, 1}, node));
    WEFT_TRY_STATUS(expect_between("before", node.integer(kPadBefore), 0, kLargestStep));
    WEFT_TRY_STATUS(expect_between("after", node.integer(kPadAfter), 0, kLargestStep));
    std::vector<plan::Dim> dims(x.dims.begin(), x.dims.end());
    dims[static_cast<std::size_t>(x.position(along))].size +=
        node.integer(kPadBefore) + node.integer(kPadAfter);
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol along = node.symbol(kPadAlong);
    return parallel_loops_except(node, {&along, 1});
  }

  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const Symbol along = node.symbol(kPadAlong);
    const std::int64_t begin = node.integer(kPadBefore);
    WEFT_TRY(value,
             add_slice(g.graph, g.of_result(), along, begin, begin + node.input_type(0).size_of(along)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Symbol along = at.node().symbol(kPadAlong);
    const Blocks x(at.node().input_type(0), along), y(at.node().result_type(0), along);
    const std::int64_t run = x.size * x.inner;
    for (std::int64_t outer = 0; outer < x.outer; ++outer)
      std::copy_n(at.input(0).data.data() + outer * run, run,
                  at.result(0).data.data() + (outer * y.size + at.node().integer(kPadBefore)) * y.inner);
  }
};

}  // namespace

const Operator& pad() {
  static const Pad op;
  return op;
}

}  // namespace weft::ops
