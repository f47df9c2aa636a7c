// transpose: the same value with its indices in another memory order.
//
//   y[to] = x[..]      to is a permutation of x's indices
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kTransposeAttributes = {{{"to", AttributeKind::indices}}};
constexpr std::size_t kTransposeTo = 0;

class Transpose final : public OperatorOf<Transpose> {
 public:
  std::string_view name() const override { return "transpose"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kTransposeAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY(dims, pick(x.dims, node.indices(kTransposeTo), node));
    if (dims.size() != x.rank())
      return user_error(fmt::format("transpose must keep all of {}, found {}",
                                    print_indices(x.dims, node.graph().symbols()),
                                    print_indices(dims, node.graph().symbols())),
                        "reduce drops indices");
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  Status gradient(Gradient& g) const override {
    WEFT_TRY(value, add_transpose(g.graph, g.of_result(), indices_of(g.node().input_type(0).dims)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    T* next = at.result(0).data.data();
    for (const std::int64_t from : offsets_along(at.node().input_type(0), at.node().result_type(0).dims))
      *next++ = at.input(0).data[from];
  }
};

}  // namespace

const Operator& transpose() {
  static const Transpose op;
  return op;
}

}  // namespace weft::ops
