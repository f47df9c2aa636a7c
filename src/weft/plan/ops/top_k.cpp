// top-k: the largest elements of every row, largest first, and their positions.
//
//   values[.., k], positions[.., k]      equal elements in order of position
//
// `into` is the new index k, of size `count`; it comes last.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/routing.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kTopKAttributes = {
    {{"over", AttributeKind::index}, {"into", AttributeKind::index}, {"count", AttributeKind::integer}}};
constexpr std::size_t kTopKOver = 0, kTopKInto = 1, kTopKCount = 2;

class TopKOperator final : public OperatorOf<TopKOperator> {
 public:
  std::string_view name() const override { return "top-k"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kTopKAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const Symbol over = node.symbol(kTopKOver), into = node.symbol(kTopKInto);
    WEFT_TRY_STATUS(expect(node, 0, Elements::number));
    WEFT_TRY_STATUS(expect_over(node, 0, {&over, 1}));
    if (x.has(into))
      return user_error(fmt::format("top-k needs a new index, found {} in {}", node.text(into),
                                    print_indices(x.dims, node.graph().symbols())));
    WEFT_TRY_STATUS(expect_between("count", node.integer(kTopKCount), 1, x.size_of(over)));
    DimList dims = without(x.dims, {&over, 1});
    dims.push_back({into, node.integer(kTopKCount)});
    WEFT_TRY_STATUS(results.add(x.dtype, dims));
    return results.add(plan::DType::i32, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::array<Symbol, 2> whole = {node.symbol(kTopKOver), node.symbol(kTopKInto)};
    return parallel_loops_except(node, whole);
  }

  // One comparison per element and result position.
  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops =
        static_cast<double>(node.input_type(0).elements()) * static_cast<double>(node.integer(kTopKCount));
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::Type x = node.input_type(0);
    if (!g.of_result(0).valid()) return {};
    const plan::Dim over{node.symbol(kTopKOver), x.size_of(node.symbol(kTopKOver))};
    WEFT_TRY(value, add_scatter_add(g.graph, node.result(1), g.of_result(0), over, indices_of(x.dims)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Symbol over = at.node().symbol(kTopKOver);
    const Rows rows(at.node().input_type(0), {&over, 1});
    const std::int64_t count = at.node().integer(kTopKCount);
    std::vector<std::int64_t> order(rows.columns.size());
    std::int64_t next = 0;
    for (const std::int64_t start : rows.starts) {
      const auto value = [&](std::int64_t place) { return at.input(0).data[start + rows.columns[place]]; };
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](auto a, auto b) { return at.numbers.less(value(b), value(a)); });
      for (std::int64_t k = 0; k < count; ++k, ++next) {
        at.result(0).data[next] = value(order[k]);
        at.result(1).data[next] = at.numbers.from_integer(order[k]);
      }
    }
  }
};

}  // namespace

const Operator& top_k() {
  static const TopKOperator op;
  return op;
}

}  // namespace weft::ops
