// merge: flattens several adjacent indices into one, the first one slowest.
//
//   y[.., d, ..] = x[.., h, e, ..]      d = h * size(e) + e
//
// A slice of h is a contiguous range of d, as in split. The inner indices stay whole.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kMergeAttributes = {
    {{"along", AttributeKind::indices}, {"into", AttributeKind::index}}};
constexpr std::size_t kMergeAlong = 0, kMergeInto = 1;

class Merge final : public OperatorOf<Merge> {
 public:
  std::string_view name() const override { return "merge"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kMergeAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  bool is_view() const override { return true; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const std::span<const Symbol> along = node.indices(kMergeAlong);
    if (along.empty()) return user_error("merge needs at least one index");
    WEFT_TRY(parts, pick(x.dims, along, node));
    const auto first = static_cast<std::size_t>(x.position(along[0]));
    for (std::size_t i = 1; i < along.size(); ++i)
      if (x.position(along[i]) != static_cast<int>(first + i))
        return user_error(
            fmt::format("merged indices must be neighbours in {}, in that order, found {} after {}",
                        print_indices(x.dims, node.graph().symbols()), node.text(along[i]),
                        node.text(along[i - 1])),
            "transpose first");
    std::vector<plan::Dim> dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(first));
    dims.push_back({node.symbol(kMergeInto), points_of(parts)});
    const std::span<const plan::Dim> rest = x.dims.subspan(first + along.size());
    dims.insert(dims.end(), rest.begin(), rest.end());
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const plan::Type x = node.input_type(0);
    const int first = x.position(node.indices(kMergeAlong)[0]);
    const int parts = static_cast<int>(node.indices(kMergeAlong).size());
    plan::Signature signature;
    for (int at = 0; at < static_cast<int>(x.rank()); ++at) {
      const bool inner = at > first && at < first + parts;
      const int to = inner ? -1 : at <= first ? at : at - parts + 1;
      signature.loops.push_back(
          loop_at(x.dims[static_cast<std::size_t>(at)], inner ? kWhole : kParallel, {at}, {to}));
    }
    return signature;
  }

  plan::Work work(const NodeView&) const override { return {}; }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(parts, pick(node.input_type(0).dims, node.indices(kMergeAlong), node));
    WEFT_TRY(value, add_split(g.graph, g.of_result(), node.symbol(kMergeInto), parts));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    at.result(0).data = at.input(0).data;
  }
};

}  // namespace

const Operator& merge() {
  static const Merge op;
  return op;
}

}  // namespace weft::ops
