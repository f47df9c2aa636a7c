// split: one index divided into several, the first one slowest.
//
//   y[.., h, e, ..] = x[.., d, ..]      d = h * size(e) + e
//
// `into` is a type, used only for its dims. A slice of h is a contiguous range of d, so the index
// may be sliced wherever size(e) divides the cut. The inner indices stay whole.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kSplitAttributes = {
    {{"along", AttributeKind::index}, {"into", AttributeKind::type}}};
constexpr std::size_t kSplitAlong = 0, kSplitInto = 1;

class Split final : public OperatorOf<Split> {
 public:
  std::string_view name() const override { return "split"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSplitAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  bool is_view() const override { return true; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0), into = node.type(kSplitInto);
    const Symbol along = node.symbol(kSplitAlong);
    WEFT_TRY(found, pick(x.dims, {&along, 1}, node));
    if (into.rank() == 0) return user_error("split needs at least one index to split into");
    if (into.elements() != found[0].size)
      return user_error(fmt::format("index {} of size {} cannot be split into {} elements", node.text(along),
                                    found[0].size, into.elements()));
    const auto at = static_cast<std::size_t>(x.position(along));
    std::vector<plan::Dim> dims(x.dims.begin(), x.dims.end());
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at));
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), into.dims.begin(), into.dims.end());
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::span<const plan::Dim> dims = node.result_type(0).dims;
    const int first = node.input_type(0).position(node.symbol(kSplitAlong));
    const int parts = static_cast<int>(node.type(kSplitInto).rank());
    plan::Signature signature;
    for (int at = 0; at < static_cast<int>(dims.size()); ++at) {
      const bool inner = at > first && at < first + parts;
      const int from = inner ? -1 : at <= first ? at : at - parts + 1;
      signature.loops.push_back(
          loop_at(dims[static_cast<std::size_t>(at)], inner ? kWhole : kParallel, {from}, {at}));
    }
    return signature;
  }

  plan::Work work(const NodeView&) const override { return {}; }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value, add_merge(g.graph, g.of_result(), indices_of(node.type(kSplitInto).dims),
                              node.symbol(kSplitAlong)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    at.result(0).data = at.input(0).data;
  }
};

}  // namespace

const Operator& split() {
  static const Split op;
  return op;
}

}  // namespace weft::ops
