// broadcast: repeats a value along indices that it lacks.
//
//   y[type] = x[..]      type has every index of x, in any order, and others
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kBroadcastAttributes = {{{"type", AttributeKind::type}}};
constexpr std::size_t kBroadcastType = 0;

class Broadcast final : public OperatorOf<Broadcast> {
 public:
  std::string_view name() const override { return "broadcast"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kBroadcastAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0), to = node.type(kBroadcastType);
    if (x.dtype != to.dtype)
      return user_error(fmt::format("broadcast keeps the dtype: {} cannot become {}", plan::name(x.dtype),
                                    plan::name(to.dtype)));
    WEFT_TRY(found, pick(to.dims, indices_of(x.dims), node));
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].size != x.dims[i].size)
        return user_error(fmt::format("index {} has size {} in operand 0 but {} in the type",
                                      node.text(found[i].index), x.dims[i].size, found[i].size));
    return results.add(to);
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  Status gradient(Gradient& g) const override {
    Formula f(g.graph);
    g.set(0, f.sum(g.of_result(), g.node().input_type(0).dims));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    T* next = at.result(0).data.data();
    for (const std::int64_t from : offsets_along(at.node().input_type(0), at.node().result_type(0).dims))
      *next++ = at.input(0).data[from];
  }
};

}  // namespace

const Operator& broadcast() {
  static const Broadcast op;
  return op;
}

}  // namespace weft::ops
