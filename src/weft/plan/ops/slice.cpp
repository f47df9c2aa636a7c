// slice: the range [begin, end) of a value along an index.
//
//   y[.., i, ..] = x[.., begin + i, ..]
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

constexpr std::array<plan::AttributeSpec, 3> kSliceAttributes = {
    {{"along", AttributeKind::index}, {"begin", AttributeKind::integer}, {"end", AttributeKind::integer}}};
constexpr std::size_t kSliceAlong = 0, kSliceBegin = 1, kSliceEnd = 2;

class Slice final : public OperatorOf<Slice> {
 public:
  std::string_view name() const override { return "slice"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSliceAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    const Symbol along = node.symbol(kSliceAlong);
    const std::int64_t begin = node.integer(kSliceBegin), end = node.integer(kSliceEnd);
    WEFT_TRY(found, pick(x.dims, {&along, 1}, node));
    if (begin < 0 || begin >= end || end > found[0].size)
      return user_error(fmt::format("slice must lie within index {} of size {}, found {} to {}",
                                    node.text(along), found[0].size, begin, end));
    std::vector<plan::Dim> dims(x.dims.begin(), x.dims.end());
    dims[static_cast<std::size_t>(x.position(along))].size = end - begin;
    return results.add(x.dtype, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol along = node.symbol(kSliceAlong);
    return parallel_loops_except(node, {&along, 1});
  }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.bytes_read = work.bytes_written;
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const Symbol along = node.symbol(kSliceAlong);
    const std::int64_t size = node.input_type(0).size_of(along);
    WEFT_TRY(value, add_pad(g.graph, g.of_result(), along, node.integer(kSliceBegin),
                            size - node.integer(kSliceEnd)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Blocks x(at.node().input_type(0), at.node().symbol(kSliceAlong));
    const std::int64_t begin = at.node().integer(kSliceBegin), count = at.node().integer(kSliceEnd) - begin;
    T* to = at.result(0).data.data();
    for (std::int64_t outer = 0; outer < x.outer; ++outer)
      to = std::copy_n(at.input(0).data.data() + (outer * x.size + begin) * x.inner, count * x.inner, to);
  }
};

}  // namespace

const Operator& slice() {
  static const Slice op;
  return op;
}

}  // namespace weft::ops
