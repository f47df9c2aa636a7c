#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/train/chain.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::ScopeId;
using plan::ValueId;

class Extraction {
 public:
  Extraction(const Graph& graph, std::span<const Part> parts)
      : graph_(graph), transplant_(graph, made_), values_(graph.value_count()) {
    for (const Part& part : parts) nodes_.insert(nodes_.end(), part.nodes.begin(), part.nodes.end());
    std::ranges::sort(nodes_);
  }

  Result<Graph> run() && {
    made_.name = graph_.name;
    copy_scopes();
    for (const NodeId n : nodes_) {
      const plan::Node& node = graph_.node(n);
      std::vector<ValueId> inputs;
      for (const ValueId value : node.inputs) {
        if (!values_[value.value].valid()) WEFT_TRY_STATUS(bring(value));
        inputs.push_back(values_[value.value]);
      }
      adopt_context(node);
      WEFT_TRY(made, transplant_.node(n, inputs));
      for (std::size_t k = 0; k < node.result_count; ++k)
        values_[graph_.result(n, k).value] = made_.result(made, k);
    }
    add_outputs();
    return std::move(made_);
  }

 private:
  void copy_scopes() {
    for (std::size_t s = 0; s < graph_.scope_count(); ++s) {
      plan::Scope scope = graph_.scope(ScopeId(s));
      scope.name = transplant_.symbol(scope.name);
      if (scope.parent.valid()) scope.parent = scopes_[scope.parent.value];
      scopes_.push_back(made_.add_scope(scope));
    }
  }

  void adopt_context(const plan::Node& node) {
    made_.set_label(node.label.valid() ? transplant_.symbol(node.label) : Symbol());
    made_.set_scope(node.scope.valid() ? scopes_[node.scope.value] : ScopeId());
  }

  // Copies sources and constants; turns a value of another part into an input.
  Status bring(ValueId value) {
    const plan::Value& from = graph_.value(value);
    const plan::Node& producer = graph_.node(from.producer);
    if (producer.inputs.empty()) {
      adopt_context(producer);
      WEFT_TRY(made, transplant_.node(from.producer, {}));
      for (std::size_t k = 0; k < producer.result_count; ++k)
        values_[graph_.result(from.producer, k).value] = made_.result(made, k);
      return {};
    }
    made_.set_label({});
    made_.set_scope({});
    made_.set_when(producer.when);
    const plan::AttributeValue attributes[] = {made_.symbol(fmt::format("from outside {}", brought_++)),
                                               transplant_.type(from.type)};
    WEFT_TRY(made, made_.add_value(ops::input(), {}, attributes));
    values_[value.value] = made;
    return {};
  }

  void add_outputs() {
    std::vector<bool> inside(graph_.node_count()), asked(graph_.value_count());
    for (const NodeId n : nodes_) inside[n.value] = true;
    for (const plan::Output& output : graph_.outputs())
      if (inside[graph_.value(output.value).producer.value])
        transplant_.output(output, values_[output.value.value]);
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      if (inside[n]) continue;
      for (const ValueId value : graph_.node(NodeId(n)).inputs)
        if (inside[graph_.value(value).producer.value]) asked[value.value] = true;
    }
    for (std::size_t v = 0, k = 0; v < asked.size(); ++v)
      if (asked[v]) made_.add_output(made_.symbol(fmt::format("to outside {}", k++)), values_[v]);
  }

  const Graph& graph_;
  Graph made_;
  plan::Transplant transplant_;
  std::vector<NodeId> nodes_;
  std::vector<ScopeId> scopes_;
  std::vector<ValueId> values_;  // by value: its value in the new plan
  int brought_ = 0;
};

}  // namespace

Result<Graph> extract(const Graph& graph, const Chain& chain, std::size_t first, std::size_t count) {
  return Extraction(graph, std::span(chain.parts).subspan(first, count)).run();
}

}  // namespace weft::train
