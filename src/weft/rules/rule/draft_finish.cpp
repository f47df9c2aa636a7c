// The plan that a draft represents: its nodes in order, its hash, and the plan itself.
#include <functional>
#include <queue>

#include "weft/base/hash.h"
#include "weft/plan/graph/transplant.h"
#include "weft/rules/rule/draft.h"

namespace weft::rule {

using plan::NodeId;
using plan::ValueId;

std::vector<NodeId> Draft::nodes() const {
  // The ready node with the smallest id is next, so unchanged parts keep their order.
  std::vector<std::uint32_t> waiting(graph_.node_count(), 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (std::size_t n = 0; n < waiting.size(); ++n) {
    if (!alive(NodeId(n))) continue;
    // Count a reader once even if it reads a value several times.
    const std::span<const ValueId> read = inputs(NodeId(n));
    for (std::size_t i = 0; i < read.size(); ++i)
      if (std::find(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(i), read[i]) ==
          read.begin() + static_cast<std::ptrdiff_t>(i))
        ++waiting[n];
    if (waiting[n] == 0) ready.push(NodeId(n));
  }
  std::vector<NodeId> order;
  order.reserve(live_count_);
  while (!ready.empty()) {
    const NodeId node = ready.top();
    ready.pop();
    order.push_back(node);
    for (std::size_t k = 0; k < graph_.node(node).result_count; ++k)
      for (const NodeId reader : readers(graph_.result(node, k)))
        if (--waiting[reader.value] == 0) ready.push(reader);
  }
  WEFT_CHECK(order.size() == live_count_, "a draft has no cycles");
  return order;
}

plan::Graph Draft::finish() const {
  plan::Graph plan;
  plan.name = graph_.name;
  plan::Transplant transplant(graph_, plan);
  for (std::size_t s = 0; s < graph_.scope_count(); ++s) {
    plan::Scope scope = graph_.scope(plan::ScopeId(s));
    scope.name = transplant.symbol(scope.name);
    plan.add_scope(scope);
  }
  std::vector<ValueId> values(graph_.value_count());
  std::vector<ValueId> read;
  for (const NodeId node : nodes()) {
    plan.set_label(transplant.symbol(states_[node.value].label));
    plan.set_scope(graph_.node(node).scope);
    read.clear();
    for (const ValueId input : inputs(node)) read.push_back(values[input.value]);
    const NodeId copy = transplant.node(node, read).value();
    for (std::size_t k = 0; k < graph_.node(node).result_count; ++k)
      values[graph_.result(node, k).value] = plan.result(copy, k);
  }
  plan.set_label(transplant.symbol(graph_.label()));
  plan.set_scope({});
  for (const plan::Output& output : outputs_) transplant.output(output, values[output.value.value]);
  return plan;
}

std::uint64_t Draft::hash() const {
  // Hash names by text and types by dims: a graph's numbering depends on its history.
  std::vector<std::uint64_t> names(graph_.symbols().size());
  for (std::size_t s = 0; s < names.size(); ++s)
    names[s] = Hasher().text(graph_.text(Symbol(s))).digest().high;
  std::vector<Digest> values(graph_.value_count());
  for (const NodeId id : nodes()) {
    const plan::Node& node = graph_.node(id);
    Hasher hasher;
    hasher.text(node.op->name());
    // The phase is hashed only in training plans.
    if (node.when.phase != plan::Phase::forward) hasher.text(name(node.when.phase));
    for (const ValueId input : inputs(id)) hasher.digest_of(values[input.value]);
    const std::span<const plan::AttributeSpec> specs = node.op->attributes();
    for (std::size_t k = 0; k < specs.size(); ++k) {
      const plan::Attribute& attribute = node.attributes[k];
      switch (specs[k].kind) {
        case plan::AttributeKind::word:
        case plan::AttributeKind::index: hasher.number(names[attribute.id]); break;
        case plan::AttributeKind::indices:
          hasher.number(attribute.count);
          for (std::uint32_t i = 0; i < attribute.count; ++i)
            hasher.number(names[attribute.indices[i].value]);
          break;
        case plan::AttributeKind::type: {
          const plan::Type type = graph_.type(plan::TypeId(attribute.id));
          hasher.number(static_cast<std::uint64_t>(type.dtype)).number(type.rank());
          for (const plan::Dim& dim : type.dims)
            hasher.number(names[dim.index.value]).number(static_cast<std::uint64_t>(dim.size));
          break;
        }
        case plan::AttributeKind::integer:
          hasher.number(static_cast<std::uint64_t>(attribute.integer));
          break;
        case plan::AttributeKind::real: hasher.real(attribute.real); break;
        case plan::AttributeKind::dtype: hasher.number(attribute.id); break;
      }
    }
    for (std::size_t k = 0; k < node.result_count; ++k)
      values[graph_.result(id, k).value] = Hasher(hasher).number(k).digest();
  }
  Hasher hasher;
  for (const plan::Output& output : outputs_)
    hasher.number(names[output.name.value]).digest_of(values[output.value.value]);
  return hasher.digest().high;
}

}  // namespace weft::rule
