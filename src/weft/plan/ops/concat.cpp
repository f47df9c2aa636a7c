// concat: concatenates values along one index.
//
//   y[.., i, ..] = the operand that contains position i, in order      sizes along the index add up
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kConcatAttributes = {{{"along", AttributeKind::index}}};
constexpr std::size_t kConcatAlong = 0;

class Concat final : public OperatorOf<Concat> {
 public:
  std::string_view name() const override { return "concat"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kConcatAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 64; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const Symbol along = node.symbol(kConcatAlong);
    const plan::Type first = node.input_type(0);
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY_STATUS(pick(first.dims, {&along, 1}, node));
    std::vector<plan::Dim> dims(first.dims.begin(), first.dims.end());
    plan::Dim& total = dims[static_cast<std::size_t>(first.position(along))];
    for (std::size_t i = 1; i < node.input_count(); ++i) {
      const plan::Type next = node.input_type(i);
      const bool alike =
          std::ranges::equal(first.dims, next.dims, [&](const plan::Dim& a, const plan::Dim& b) {
            return a == b || (a.index == along && b.index == along);
          });
      if (!alike)
        return user_error(fmt::format("operands of concat may differ only in the size of {}, found {} and {}",
                                      node.text(along), print(first, node.graph().symbols()),
                                      print(next, node.graph().symbols())));
      total.size += next.size_of(along);
    }
    return results.add(first.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol along = node.symbol(kConcatAlong);
    return parallel_loops_except(node, {&along, 1});
  }

  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const Symbol along = node.symbol(kConcatAlong);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const std::int64_t end = begin + node.input_type(i).size_of(along);
      if (g.wants(i)) {
        WEFT_TRY(value, add_slice(g.graph, g.of_result(), along, begin, end));
        g.set(i, value);
      }
      begin = end;
    }
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const Symbol along = node.symbol(kConcatAlong);
    const Blocks y(node.result_type(0), along);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const std::int64_t size = node.input_type(i).size_of(along), run = size * y.inner;
      for (std::int64_t outer = 0; outer < y.outer; ++outer)
        std::copy_n(at.input(i).data.data() + outer * run, run,
                    at.result(0).data.data() + (outer * y.size + begin) * y.inner);
      begin += size;
    }
  }
};

}  // namespace

const Operator& concat() {
  static const Concat op;
  return op;
}

}  // namespace weft::ops
