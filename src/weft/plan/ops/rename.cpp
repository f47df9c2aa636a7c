// rename: the same value with some indices renamed.
//
//   y[.., to_i, ..] = x[.., from_i, ..]
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kRenameAttributes = {
    {{"from", AttributeKind::indices}, {"to", AttributeKind::indices}}};
constexpr std::size_t kRenameFrom = 0, kRenameTo = 1;

class Rename final : public OperatorOf<Rename> {
 public:
  std::string_view name() const override { return "rename"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kRenameAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  bool is_view() const override { return true; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const std::span<const Symbol> from = node.indices(kRenameFrom), to = node.indices(kRenameTo);
    if (from.size() != to.size())
      return user_error(
          fmt::format("rename needs as many new names as old ones, found {} and {}", to.size(), from.size()));
    WEFT_TRY_STATUS(pick(x.dims, from, node));
    std::vector<plan::Dim> dims(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < from.size(); ++i)
      dims[static_cast<std::size_t>(x.position(from[i]))].index = to[i];
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    plan::Signature signature;
    int at = 0;
    for (const plan::Dim& dim : node.result_type(0).dims) {
      signature.loops.push_back(loop_at(dim, kParallel, {at}, {at}));
      ++at;
    }
    return signature;
  }

  plan::Work work(const NodeView&) const override { return {}; }

  Status gradient(Gradient& g) const override {
    WEFT_TRY(value,
             add_rename(g.graph, g.of_result(), g.node().indices(kRenameTo), g.node().indices(kRenameFrom)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    at.result(0).data = at.input(0).data;
  }
};

}  // namespace

const Operator& rename() {
  static const Rename op;
  return op;
}

}  // namespace weft::ops
