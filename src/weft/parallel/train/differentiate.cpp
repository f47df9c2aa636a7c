#include "weft/parallel/train/differentiate.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operator.h"

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Restores the graph's label, scope and phase.
class LabelGuard {
 public:
  explicit LabelGuard(Graph& graph)
      : graph_(graph), label_(graph.label()), scope_(graph.scope()), when_(graph.when()) {}
  ~LabelGuard() {
    graph_.set_label(label_);
    graph_.set_scope(scope_);
    graph_.set_when(when_);
  }
  LabelGuard(const LabelGuard&) = delete;
  LabelGuard& operator=(const LabelGuard&) = delete;

 private:
  Graph& graph_;
  Symbol label_;
  plan::ScopeId scope_;
  plan::When when_;
};

// For each value up to the loss: whether it depends on a wanted one through real values only.
std::vector<char> depends_on(const Graph& graph, std::span<const ValueId> wanted, NodeId last) {
  std::vector<char> depends(graph.value_count(), 0);
  for (const ValueId value : wanted) depends[value.value] = 1;
  for (std::size_t id = 0; id <= last.value; ++id) {
    const NodeView node = graph.view(NodeId(id));
    if (&node.op() == &ops::stop_gradient()) continue;
    const bool any =
        std::ranges::any_of(node.node().inputs, [&](ValueId input) { return depends[input.value] != 0; });
    for (std::size_t k = 0; any && k < node.result_count(); ++k)
      if (is_real(node.result_type(k).dtype)) depends[node.result(k).value] = 1;
  }
  return depends;
}

Status check_types(const Graph& graph, ValueId loss, std::span<const ValueId> wanted) {
  const plan::Type type = graph.type(loss);
  if (!is_real(type.dtype) || type.rank() != 0)
    return user_error(fmt::format("the loss must be a real scalar, found {}", print(type, graph.symbols())),
                      "reduce it with mean or sum");
  for (const ValueId value : wanted)
    if (!is_real(graph.type(value).dtype))
      return user_error(fmt::format("only real-valued tensors have gradients, found {}",
                                    print(graph.type(value), graph.symbols())));
  return {};
}

// The gradients of values, as far as known. Gradients of slices of a value are collected until all
// are known. They then become one concat instead of a sum of mostly zero tensors.
struct Gradients {
  std::vector<ValueId> totals;  // by value
  std::unordered_map<std::uint32_t, std::vector<ValueId>> padded;
};

Status add_term(Graph& graph, ValueId& total, ValueId term) {
  if (!total.valid()) {
    total = term;
    return {};
  }
  WEFT_TRY(sum, ops::add_pointwise(graph, ops::add(), {total, term}));
  total = sum;
  return {};
}

// Concatenates adjacent slices; invalid if they overlap, leave gaps or are along several indices.
Result<ValueId> join_padded(Graph& graph, std::vector<ValueId> terms) {
  const auto pad = [&](ValueId term) { return graph.view(graph.value(term).producer); };
  const Symbol along = pad(terms.front()).symbol(0);
  std::ranges::sort(terms, {}, [&](ValueId term) { return pad(term).integer(1); });
  const std::int64_t before = pad(terms.front()).integer(1), after = pad(terms.back()).integer(2);
  std::int64_t end = before;
  std::vector<ValueId> parts;
  for (const ValueId term : terms) {
    const NodeView node = pad(term);
    if (node.symbol(0) != along || node.integer(1) != end) return ValueId();
    end += node.input_type(0).size_of(along);
    parts.push_back(node.input(0));
  }
  constexpr std::size_t kMost = 64;  // operands of a concat
  while (parts.size() > 1) {
    std::vector<ValueId> joined;
    for (std::size_t i = 0; i < parts.size(); i += kMost) {
      WEFT_TRY(one,
               ops::add_concat(graph, std::span(parts).subspan(i, std::min(kMost, parts.size() - i)), along));
      joined.push_back(one);
    }
    parts = std::move(joined);
  }
  return ops::add_pad(graph, parts.front(), along, before, after);
}

// The final gradient of a value.
Result<ValueId> total_of(Graph& graph, ValueId value, Gradients& gradients) {
  ValueId& total = gradients.totals[value.value];
  const auto padded = gradients.padded.find(value.value);
  if (padded == gradients.padded.end()) return total;
  std::vector<ValueId> terms = std::move(padded->second);
  gradients.padded.erase(padded);
  if (terms.size() > 1) {
    WEFT_TRY(joined, join_padded(graph, terms));
    if (joined.valid()) terms = {joined};
  }
  for (const ValueId term : terms) WEFT_TRY_STATUS(add_term(graph, total, term));
  return total;
}

// Adds the gradients that one node contributes to its inputs.
Status step_back(Graph& graph, NodeId id, std::span<const char> depends, Gradients& gradients) {
  const NodeView node = graph.view(id);
  std::vector<ValueId> of_results;
  graph.set_label(node.node().label);
  graph.set_scope(node.node().scope);
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    WEFT_TRY(total, total_of(graph, node.result(k), gradients));
    of_results.push_back(total);
  }
  if (std::ranges::none_of(of_results, &ValueId::valid)) return {};

  std::vector<char> wanted;
  for (const ValueId input : node.node().inputs) wanted.push_back(depends[input.value]);
  if (std::ranges::none_of(wanted, [](char w) { return w != 0; })) return {};

  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const plan::DType dtype = node.input_type(i).dtype; wanted[i] != 0 && plan::is_f8(dtype))
      return user_error(fmt::format("node {}: gradients of {} are not supported", plan::describe(graph, id),
                                    plan::name(dtype)),
                        "use a wider type; precision = f8 rounds the model's products on its own");

  ops::Gradient g(graph, id, of_results, wanted);
  if (Status status = ops::operator_of(node).gradient(g); !status.ok()) {
    Error error = std::move(status).error();
    error.message = fmt::format("node {}: {}", plan::describe(graph, id), error.message);
    return error;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ValueId term = g.of_inputs()[i];
    if (wanted[i] == 0 || !term.valid()) continue;
    const std::uint32_t input = node.input(i).value;
    WEFT_CHECK(graph.value(term).type == graph.value(node.input(i)).type, node.op().name());
    if (&node.op() == &ops::slice() && graph.node(graph.value(term).producer).op == &ops::pad()) {
      gradients.padded[input].push_back(term);
    } else {
      WEFT_TRY_STATUS(add_term(graph, gradients.totals[input], term));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ValueId>> differentiate(Graph& graph, ValueId loss,
                                           std::span<const ValueId> with_respect_to, ValueId scale) {
  WEFT_TRY_STATUS(check_types(graph, loss, with_respect_to));
  const LabelGuard guard(graph);
  const NodeId last = graph.value(loss).producer;
  const std::vector<char> depends = depends_on(graph, with_respect_to, last);

  Gradients gradients{.totals = std::vector<ValueId>(graph.value_count()), .padded = {}};
  if (depends[loss.value] != 0) {
    graph.set_when({.phase = plan::Phase::backward});
    const plan::DType dtype = graph.type(loss).dtype;
    WEFT_TRY(first, scale.valid() ? ops::add_cast(graph, scale, dtype) : ops::add_constant(graph, 1, dtype));
    gradients.totals[loss.value] = first;
    for (std::size_t id = last.value + 1; id-- > 0;)
      WEFT_TRY_STATUS(step_back(graph, NodeId(id), depends, gradients));
  }

  std::vector<ValueId> wanted;
  for (const ValueId value : with_respect_to) {
    WEFT_TRY(total, total_of(graph, value, gradients));
    wanted.push_back(total);
  }
  return wanted;
}

}  // namespace weft::train
