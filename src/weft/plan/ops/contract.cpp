// contract: the product of its operands, summed over the indices that are not kept.
//
//   y[to] = sum over all other indices of  x0[...] * x1[...] * ...
//
// Operands join on the indices they share. Matrix products, batched products, dot products,
// outer products and sums of products are all this one operator.
//
// Operands may mix both 8-bit float formats; the result is then bf16.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sums.h"

namespace weft::ops {
namespace {

using plan::Dim;
using plan::NodeView;
using plan::Type;

constexpr std::array<plan::AttributeSpec, 1> kContractAttributes = {{{"to", plan::AttributeKind::indices}}};
constexpr std::size_t kContractTo = 0;

class Contract final : public OperatorOf<Contract> {
 public:
  std::string_view name() const override { return "contract"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kContractAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 64; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY(joined, join_inputs(node));
    WEFT_TRY(kept, pick(joined, node.indices(kContractTo), node));
    if (multiplies_f8(node)) return results.add(plan::DType::bf16, kept);
    WEFT_TRY_STATUS(expect(node, 0, Elements::number));
    WEFT_TRY_STATUS(same_dtype(node));
    return results.add(node.input_type(0).dtype, kept);
  }

  static bool multiplies_f8(const NodeView& node) {
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (!plan::is_f8(node.input_type(i).dtype)) return false;
    return node.input_count() > 1;
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [](const plan::Loop& loop) {
      return loop.results[0] >= 0 ? Behaviour{plan::Role::parallel}
                                  : Behaviour{plan::Role::reduced, plan::Monoid::sum};
    });
  }

  plan::Work work(const NodeView& node) const override {
    double points = 1;
    for (const plan::Loop& loop : signature(node).loops) points *= static_cast<double>(loop.size);
    plan::Work work = bytes_of(node);
    // One multiply-add per point; each further factor costs a product, a single factor only the
    // sum.
    const double factors = static_cast<double>(node.input_count());
    work.multiply_adds = factors > 1 ? points : 0;
    work.flops = points * factors;
    return work;
  }

  // d x_i = contract(dy, the other operands) with x_i's indices: one contraction per input.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (!g.wants(i)) continue;
      std::vector<plan::ValueId> operands = {g.of_result()};
      for (std::size_t j = 0; j < node.input_count(); ++j)
        if (j != i) operands.push_back(node.input(j));
      WEFT_TRY(value, add_contract_spread(g.graph, operands, node.input_type(i).dims));
      g.set(i, value);
    }
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const DimList all = *join_inputs(node);
    std::span<const plan::Dim> loops(all.begin(), all.end());
    const std::size_t inputs = node.input_count();
    // The last index is a separate inner loop: most of the time of a proof is spent there.
    std::vector<std::int64_t> steps(inputs + 1, 0);
    std::int64_t inner = 1;
    const auto along = [&](std::size_t operand) {
      return strides_along(operand < inputs ? node.input_type(operand) : node.result_type(0), loops);
    };
    if (!loops.empty()) {
      inner = loops.back().size;
      for (std::size_t k = 0; k <= inputs; ++k) steps[k] = along(k).back();
      loops = loops.first(loops.size() - 1);
    }
    Walk walk(sizes_of(loops));
    for (std::size_t k = 0; k <= inputs; ++k) walk.track(along(k));
    if (walk.empty()) return;
    std::vector<const T*> from(inputs);
    do {
      for (std::size_t k = 0; k < inputs; ++k) from[k] = at.input(k).data.data() + walk.offset(k);
      T* to = at.result(0).data.data() + walk.offset(inputs);
      for (std::int64_t i = 0; i < inner; ++i) {
        T product = from[0][i * steps[0]];
        for (std::size_t k = 1; k < inputs; ++k) product *= from[k][i * steps[k]];
        to[i * steps[inputs]] += product;
      }
    } while (walk.next());
  }
};

}  // namespace

const Operator& contract() {
  static const Contract op;
  return op;
}

}  // namespace weft::ops
