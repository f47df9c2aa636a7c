#include "weft/parallel/train/precision.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "weft/parallel/train/remaker.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::train {
namespace {

using plan::DType;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::array<Precision, 7> kPrecisions = {{{"f32", DType::f32},
                                                   {"f64", DType::f64},
                                                   {"bf16", DType::bf16, true},
                                                   {"f16", DType::f16, true, true},
                                                   {"f8", DType::bf16, true, false, true},
                                                   {"pure_bf16", DType::bf16},
                                                   {"pure_f16", DType::f16}}};

constexpr std::size_t kLabelledClasses = 0, kConstantValue = 0;                            // attributes
constexpr std::size_t kSourceName = 0, kInitial = 2, kFirstNumber = 3, kSecondNumber = 4;  // of a state

class WideLosses : Remaker {
 public:
  explicit WideLosses(const Graph& forward) : Remaker(forward), readers_(forward.value_count()) {
    for (std::size_t n = 0; n < forward.node_count(); ++n)
      for (const ValueId input : forward.node(NodeId(n)).inputs) readers_[input.value].push_back(NodeId(n));
  }

  Result<Graph> run() && {
    find_wide();
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      set_place(node);
      WEFT_TRY_STATUS(wide_[n]             ? add_wide(node)
                      : is_statistic(node) ? add_statistic(node)
                                           : add_as_it_is(node));
    }
    return finish();
  }

 private:
  // Finds the nodes that only losses read, back to the products; results of products stay narrow.
  void find_wide() {
    wide_.resize(from_.node_count());
    std::vector<bool> shown(from_.value_count()), loss(from_.value_count());
    for (const plan::Output& output : from_.outputs()) {
      const plan::Type type = from_.type(output.value);
      const bool is_loss = type.rank() == 0 && !output.updates.valid();
      (is_loss ? loss : shown)[output.value.value] = true;
    }
    for (std::size_t n = from_.node_count(); n-- > 0;) {
      const NodeView node = from_.view(NodeId(n));
      if (!may_be_wide(node)) continue;
      const ValueId value = node.result(0);
      const bool for_losses = std::ranges::all_of(
          readers_[value.value], [&](NodeId reader) { return static_cast<bool>(wide_[reader.value]); });
      wide_[n] = !shown[value.value] && for_losses && (loss[value.value] || !readers_[value.value].empty());
    }
  }

  static bool may_be_wide(const NodeView& node) {
    // A node that is f32 already, such as the sum of a mean, may lie between its operands and the
    // loss.
    if (node.result_count() != 1 || wide(node.result_type(0).dtype) != DType::f32) return false;
    const plan::Operator& op = node.op();
    if (&op == &ops::contract()) return node.result_type(0).rank() == 0;
    return ops::is_pointwise(op) || &op == &ops::reduce() || &op == &ops::cross_entropy() ||
           &op == &ops::labelled() || &op == &ops::constant() || &op == &ops::cast();
  }

  Result<ValueId> widened(ValueId value) {
    const ValueId made = values_[value.value];
    if (!is_narrow(made_.type(made).dtype)) return made;
    ValueId& known = widened_[made.value];
    if (known.valid()) return known;
    WEFT_TRY(cast, ops::add_cast(made_, made, DType::f32));
    return known = cast;
  }

  Status add_wide(const NodeView& node) {
    ValueId& made = values_[node.result(0).value];
    if (&node.op() == &ops::constant()) {
      WEFT_TRY(number, ops::add_constant(made_, node.real(kConstantValue), DType::f32));
      made = number;
      return {};
    }
    if (&node.op() == &ops::labelled()) {
      WEFT_TRY(marks, ops::add_labelled(made_, values_[node.input(0).value], node.integer(kLabelledClasses),
                                        DType::f32));
      made = marks;
      return {};
    }
    if (&node.op() == &ops::cast()) {
      WEFT_TRY(cast, ops::add_cast(made_, values_[node.input(0).value], DType::f32));
      made = cast;
      return {};
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) {
      WEFT_TRY(operand, widened(input));
      inputs.push_back(operand);
    }
    return copy(node, inputs);
  }

  bool is_statistic(const NodeView& node) const {
    if (&node.op() != &ops::state() || !is_narrow(node.result_type(0).dtype)) return false;
    const std::vector<NodeId>& readers = readers_[node.result(0).value];
    return !readers.empty() && std::ranges::all_of(readers, [&](NodeId reader) {
      const plan::Node& norm = from_.node(reader);
      return norm.op == &ops::batch_norm() && norm.inputs[0] != node.result(0);
    });
  }

  Status add_statistic(const NodeView& node) {
    WEFT_TRY(type, made_.intern_type(DType::f32, node.result_type(0).dims));
    WEFT_TRY(state, ops::add_state(made_, node.word(kSourceName), type,
                                   {node.word(kInitial), node.real(kFirstNumber), node.real(kSecondNumber)}));
    values_[node.result(0).value] = state;
    return {};
  }

  // Copies a node that is not wide. Of these, only batch norms have wide operands.
  Status add_as_it_is(const NodeView& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values_[input.value]);
    return copy(node, inputs);
  }

  std::vector<std::vector<NodeId>> readers_;  // by value
  std::vector<bool> wide_;                    // by node
  std::unordered_map<std::uint32_t, ValueId> widened_;
};

class WideningAgain : Remaker {
 public:
  explicit WideningAgain(const Graph& learning) : Remaker(learning), early_(learning.value_count()) {
    find_gradients();
  }

  Result<Graph> run() && {
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      if (is_gradient(node)) continue;
      set_place(node);
      std::vector<ValueId> inputs;
      for (const ValueId input : node.node().inputs) {
        const NodeView maker = from_.view(from_.value(input).producer);
        const bool again = node.phase() == plan::Phase::backward && maker.phase() == plan::Phase::forward &&
                           &maker.op() == &ops::cast() && is_narrow(maker.input_type(0).dtype) &&
                           !is_narrow(maker.result_type(0).dtype) && maker.result_type(0).rank() > 0;
        if (!again) {
          inputs.push_back(values_[input.value]);
          continue;
        }
        ValueId& known = again_[input.value];
        if (!known.valid()) {
          WEFT_TRY(cast, ops::add_cast(made_, values_[maker.input(0).value], maker.result_type(0).dtype));
          known = cast;
        }
        inputs.push_back(known);
      }
      WEFT_TRY_STATUS(copy(node, inputs));
      for (std::size_t k = 0; k < node.result_count(); ++k) {
        const NodeId cast = early_[node.result(k).value];
        if (!cast.valid()) continue;
        set_place(from_.view(cast));
        WEFT_TRY_STATUS(copy(from_.view(cast), {{values_[node.result(k).value]}}));
      }
    }
    return finish();
  }

 private:
  // Widens a gradient as soon as it is computed, so that its narrow copy is freed and ranks can sum
  // it.
  void find_gradients() {
    std::vector<bool> read_before(from_.value_count());
    for (std::size_t n = 0; n < from_.node_count(); ++n)
      for (const ValueId input : from_.node(NodeId(n)).inputs)
        if (from_.phase(NodeId(n)) != plan::Phase::update) read_before[input.value] = true;
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      if (node.phase() == plan::Phase::backward && &node.op() == &ops::cast() &&
          is_narrow(node.input_type(0).dtype) && !read_before[node.result(0).value] &&
          !ops::is_source(from_.view(from_.value(node.input(0)).producer).op()))
        early_[node.input(0).value] = node.id();
    }
  }

  bool is_gradient(const NodeView& node) const {
    return node.input_count() == 1 && early_[node.input(0).value] == node.id();
  }

  std::vector<NodeId> early_;                         // by value: the node that widens it as a gradient
  std::unordered_map<std::uint32_t, ValueId> again_;  // by value that the forward pass widens
};

}  // namespace

std::span<const std::string_view> precision_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kPrecisions.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPrecisions[i].name;
    return names;
  }();
  return kNames;
}

std::optional<Precision> find_precision(std::string_view name) {
  const auto found = std::ranges::find(kPrecisions, name, &Precision::name);
  if (found == kPrecisions.end()) return std::nullopt;
  return *found;
}

Result<Graph> with_wide_losses(const Graph& forward) { return WideLosses(forward).run(); }
Result<Graph> with_repeated_widening(const Graph& learning) { return WideningAgain(learning).run(); }

}  // namespace weft::train
