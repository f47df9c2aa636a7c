#include "weft/plan/graph/verify.h"

#include <unordered_set>

#include <fmt/format.h>

namespace weft::plan {
namespace {

Status verify_node(Graph& scratch, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  for (const ValueId input : node.inputs)
    if (!input.valid() || input.value >= node.first_result.value)
      return user_error(fmt::format("reads %{}, which is not made by an earlier node", input.value));
  WEFT_TRY_STATUS(verify_phases(graph, id));
  if (node.inputs.size() < node.op->min_inputs() || node.inputs.size() > node.op->max_inputs())
    return user_error(fmt::format("has {} operands", node.inputs.size()));
  if (node.attributes.size() != node.op->attributes().size())
    return user_error(fmt::format("has {} attributes, its operator declares {}", node.attributes.size(),
                                  node.op->attributes().size()));

  // Types are interned, so types inferred into a copy of the graph's types have comparable ids.
  ResultTypes inferred(scratch);
  WEFT_TRY_STATUS(node.op->infer(graph.view(id), inferred));
  if (inferred.types().size() != node.result_count)
    return user_error(
        fmt::format("has {} results, its operator infers {}", node.result_count, inferred.types().size()));
  for (std::size_t k = 0; k < node.result_count; ++k) {
    const Value& value = graph.value(graph.result(id, k));
    if (value.producer != id || value.result != k)
      return user_error(fmt::format("result {} does not point back to it", k));
    if (value.type != inferred.types()[k])
      return user_error(fmt::format("result {} has type {}, inferred {}", k,
                                    print(graph.type(value.type), graph.symbols()),
                                    print(scratch.type(inferred.types()[k]), scratch.symbols())));
  }
  return {};
}

}  // namespace

bool is_named_source(const Node& node) {
  return node.inputs.empty() && !node.attributes.empty() && node.op->attributes()[0].name == "name";
}

Status verify_phases(const Graph& graph, NodeId id) {
  const Phase phase = graph.phase(id);
  for (const ValueId input : graph.node(id).inputs)
    if (const Phase made = graph.phase(graph.value(input).producer); made > phase)
      return user_error(
          fmt::format("runs in the {} phase and reads %{}, which is made in the {} phase", name(phase),
                      input.value, name(made)),
          "a node may read only from its own phase or an earlier one: forward, backward, update");
  return {};
}

std::string describe(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string where = graph.path(node.scope, node.label);
  return fmt::format("%{} ({}{}{})", node.first_result.value, node.op->name(), where.empty() ? "" : " at ",
                     where);
}

Status verify(const Graph& graph) {
  Graph scratch = graph.clone();
  std::unordered_set<std::string> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeId id(n);
    const auto fault = [&](const Error& error) {
      return user_error(fmt::format("node {}: {}", describe(graph, id), error.message), error.hint);
    };
    if (Status status = verify_node(scratch, graph, id); !status.ok()) return fault(status.error());
    if (is_named_source(graph.node(id))) {
      const std::string_view name = graph.view(id).word(0);
      if (!sources.insert(std::string(name)).second)
        return fault(user_error(fmt::format("a second source is named {}", name)));
    }
  }
  std::unordered_set<std::uint32_t> names;
  for (const Output& output : graph.outputs()) {
    if (!output.value.valid() || output.value.value >= graph.value_count())
      return user_error(fmt::format("output {} is not a value of the plan", graph.text(output.name)));
    if (!names.insert(output.name.value).second)
      return user_error(fmt::format("output {} is returned twice", graph.text(output.name)));
  }
  return {};
}

}  // namespace weft::plan
