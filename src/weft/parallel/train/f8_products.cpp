#include "weft/parallel/train/f8_products.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "weft/parallel/train/remaker.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::DType;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::size_t kProductTo = 0;    // attribute
constexpr double kLeastLargest = 1e-30;  // gives a row of zeros a scale

class F8Products : Remaker {
 public:
  explicit F8Products(const plan::Graph& graph)
      : Remaker(graph), is_weight_(graph.value_count()), is_kept_narrow_(graph.value_count()) {}

  Result<plan::Graph> run() && {
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      for (std::size_t k = 0; k < node.result_count(); ++k)
        is_weight_[node.result(k).value] = is_made_of_parameters(node);
    }
    find_kept_narrow();
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      set_place(node);
      if (is_product_with_weights(node)) {
        WEFT_TRY_STATUS(add_product(node));
        continue;
      }
      std::vector<ValueId> inputs;
      for (const ValueId input : node.node().inputs) {
        const bool widens = node.phase() == plan::Phase::backward && is_kept_narrow_[input.value];
        WEFT_TRY(operand, widens ? widened(input) : Result<ValueId>(values_[input.value]));
        inputs.push_back(operand);
      }
      WEFT_TRY_STATUS(copy(node, inputs));
    }
    return finish();
  }

 private:
  struct Scaled {
    ValueId rounded, scale;
  };

  bool is_made_of_parameters(const NodeView& node) const {
    if (&node.op() == &ops::parameter()) return true;
    const bool moves = node.op().is_view() || &node.op() == &ops::cast() || &node.op() == &ops::concat() ||
                       &node.op() == &ops::transpose();
    return moves && node.input_count() > 0 && std::ranges::all_of(node.node().inputs, [&](ValueId input) {
             return static_cast<bool>(is_weight_[input.value]);
           });
  }

  // Both operands have rows of their own, and every summed index is in both.
  bool is_product_with_weights(const NodeView& node) const {
    if (&node.op() != &ops::contract() || node.input_count() != 2) return false;
    if (!is_weight_[node.input(0).value] && !is_weight_[node.input(1).value]) return false;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const plan::Type own = node.input_type(i), other = node.input_type(1 - i);
      if (own.dtype != DType::bf16) return false;
      bool has_rows = false, has_sums = false;
      for (const plan::Dim& dim : own.dims) {
        const bool kept = node.result_type(0).has(dim.index), shared = other.has(dim.index);
        if (!kept && !shared) return false;
        has_rows |= kept && !shared;
        has_sums |= !kept;
      }
      if (!has_rows || !has_sums) return false;
    }
    return true;
  }

  // Finds values that forward products round, and that later only backward products without weights
  // read. Inputs, states and views of them are kept anyway.
  void find_kept_narrow() {
    std::vector<bool> rounded(from_.value_count()), read_whole(from_.value_count());
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      const bool in_f8 = is_product_with_weights(node);
      for (const ValueId input : node.node().inputs) {
        if (node.phase() == plan::Phase::forward) {
          rounded[input.value] = rounded[input.value] || (in_f8 && !is_weight_[input.value]);
          read_whole[input.value] = read_whole[input.value] || node.op().is_view();
          continue;
        }
        const bool multiplies =
            &node.op() == &ops::contract() && !in_f8 && node.phase() == plan::Phase::backward;
        read_whole[input.value] = read_whole[input.value] || !multiplies;
        is_kept_narrow_[input.value] = true;
      }
    }
    for (const plan::Output& output : from_.outputs()) read_whole[output.value.value] = true;
    for (std::size_t v = 0; v < from_.value_count(); ++v) {
      const NodeView maker = from_.view(from_.value(ValueId(v)).producer);
      is_kept_narrow_[v] = is_kept_narrow_[v] && rounded[v] && !read_whole[v] &&
                           !ops::is_source(maker.op()) && !maker.op().is_view() &&
                           maker.phase() == plan::Phase::forward;
    }
  }

  // In the backward pass: q * s, in the type of x.
  Result<ValueId> widened(ValueId x) {
    ValueId& known = widened_[x.value];
    if (known.valid()) return known;
    const Scaled kept = first_.at(x.value);
    ops::Formula f(made_);
    known = f(ops::mul(), {f.cast(kept.rounded, from_.type(x).dtype), kept.scale});
    WEFT_TRY_STATUS(f.status());
    return known;
  }

  bool is_gradient(const NodeView& product, ValueId operand) const {
    return product.phase() == plan::Phase::backward && !is_weight_[operand.value] &&
           from_.phase(from_.value(operand).producer) == plan::Phase::backward;
  }

  Scaled scaled(const NodeView& product, ValueId operand, ops::Formula& f) {
    const plan::Type type = from_.type(operand);
    const bool gradient = is_gradient(product, operand);
    std::vector<Symbol> rows;
    for (const plan::Dim& dim : type.dims)
      if (product.result_type(0).has(dim.index)) rows.push_back(dim.index);
    Scaled& known = known_[{operand.value, product.phase(), rows}];
    if (known.rounded.valid()) return known;
    const ValueId x = values_[operand.value];
    const ValueId largest = f.reduce("largest", x, rows);
    const ValueId least = f(ops::maximum(), {largest, f.number(kLeastLargest, largest)});
    const DType dtype = gradient ? DType::f8e5m2 : DType::f8e4m3;
    known.scale = f(ops::div(), {least, f.number(plan::largest_f8(dtype), least)});
    known.rounded = f.cast(f(ops::div(), {x, known.scale}), dtype);
    if (product.phase() == plan::Phase::forward) first_.emplace(operand.value, known);
    return known;
  }

  Status add_product(const NodeView& node) {
    ops::Formula f(made_);
    const Scaled x = scaled(node, node.input(0), f), w = scaled(node, node.input(1), f);
    const ValueId product = f.keep([&] {
      return ops::add_contract(made_, {x.rounded, w.rounded}, node.indices(kProductTo));
    });
    values_[node.result(0).value] = f(ops::mul(), {f(ops::mul(), {product, x.scale}), w.scale});
    return f.status();
  }

  std::vector<bool> is_weight_, is_kept_narrow_;  // by value
  // By value and phase: the backward pass reuses no rounded value of the forward pass.
  std::map<std::tuple<std::uint32_t, plan::Phase, std::vector<Symbol>>, Scaled> known_;
  std::map<std::uint32_t, Scaled> first_;     // by value: as rounded for the first forward product
  std::map<std::uint32_t, ValueId> widened_;  // by value: its replacement in the backward pass
};

}  // namespace

Result<plan::Graph> with_f8_products(const plan::Graph& graph) { return F8Products(graph).run(); }

}  // namespace weft::train
