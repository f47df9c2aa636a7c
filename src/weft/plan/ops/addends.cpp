// addends: the addends of the ranks along a mesh axis, stacked along a new index.
//
//   y[into, ..]      partial(sum) on axis  ->  sliced(into): row r is rank r's addend
//
// Nothing is sent. The sum of y over `into` is x, so on one device the first row is x. `count` is
// the number of ranks.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kAddendsAttributes = {
    {{"axis", AttributeKind::word}, {"into", AttributeKind::index}, {"count", AttributeKind::integer}}};
constexpr std::size_t kAddendsInto = 1, kAddendsCount = 2;

class Addends final : public Communication {
 public:
  std::string_view name() const override { return "addends"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAddendsAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::stacked,
            .monoid = plan::Monoid::sum,
            .rank = node.integer(kAddendsCount),
            .keep = node.symbol(kAddendsInto)};
  }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const Symbol into = node.symbol(kAddendsInto);
    if (axis(node).empty()) return user_error("addends needs the name of a mesh axis");
    WEFT_TRY_STATUS(expect(node, 0, Elements::number));
    WEFT_TRY_STATUS(expect_between("count", node.integer(kAddendsCount), 1, plan::kMostRanks));
    if (x.has(into))
      return user_error(fmt::format("addends needs a new index, found {} in {}", node.text(into),
                                    print_indices(x.dims, node.graph().symbols())));
    DimList dims;
    dims.push_back({into, node.integer(kAddendsCount)});
    for (const plan::Dim& dim : x.dims) dims.push_back(dim);
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol into = node.symbol(kAddendsInto);
    return parallel_loops_except(node, {&into, 1});
  }

  void reference(Evaluation<float>& at) const override { stack(at); }
  void reference(Evaluation<double>& at) const override { stack(at); }
  void reference(Evaluation<Field>& at) const override { stack(at); }
  void reference(Evaluation<Rounded>& at) const override { stack(at); }

 private:
  template <class T>
  static void stack(Evaluation<T>& at) {
    std::ranges::copy(at.input(0).data, at.result(0).data.begin());
  }
};

}  // namespace

const Operator& addends() {
  static const Addends op;
  return op;
}

}  // namespace weft::ops
