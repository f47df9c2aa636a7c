#include "weft/rules/rule/behaviour.h"

#include <map>

#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr int kInstances = 4;
constexpr std::uint64_t kSeed = 0x5eed;

void put(Hasher& hasher, const plan::Operator& op) {
  hasher.text(op.name()).number(op.min_inputs()).number(op.max_inputs());
  for (const plan::AttributeSpec& spec : op.attributes())
    hasher.text(spec.name).number(static_cast<std::uint64_t>(spec.kind)).real(spec.number).text(spec.word);
}

void put(Hasher& hasher, const ops::Tensor<ops::Field>& tensor) {
  hasher.number(tensor.data.size());
  for (const ops::Field element : tensor.data) hasher.number(element.residue());
}

// Hashes every value of the graph, as on one device.
void put_values(Hasher& hasher, RuleInstance instance, Random& random) {
  plan::Graph& graph = instance.graph;
  std::map<std::string_view, ops::Tensor<ops::Field>> inputs;
  graph.clear_outputs();
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    put(hasher, node.op());
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      hasher.text(print(node.result_type(k), graph.symbols()));
      graph.add_output(graph.symbol("v"), node.result(k));
    }
    if (&node.op() != &ops::input()) continue;
    ops::Tensor<ops::Field>& tensor = inputs[node.word(0)];
    for (const plan::Dim& dim : node.result_type(0).dims) tensor.sizes.push_back(dim.size);
    for (std::int64_t k = 0; k < node.result_type(0).elements(); ++k) tensor.data.emplace_back(random.next());
  }
  ops::Numbers<ops::Field> numbers;
  numbers.key = random.next();
  const auto values = ops::interpret<ops::Field>(
      graph, [&](std::string_view name) { return &inputs.at(name); }, numbers);
  if (!values.ok()) {
    hasher.text(values.error().message);
    return;
  }
  for (const ops::Tensor<ops::Field>& value : *values) put(hasher, value);
}

}  // namespace

Digest behaviour(const Rule& rule) {
  Hasher hasher;
  Random random(kSeed);
  for (int k = 0; k < kInstances; ++k) {
    auto instance = draw_instance(rule, random);
    if (!instance.ok()) {
      hasher.text(instance.error().message);
      break;
    }
    if (instance->refusal) {
      hasher.text(instance->refusal->message);
    } else if (instance->distributed()) {
      const auto run = run_field(*instance, random);
      hasher.text(run.ok() ? "" : run.error().message);
      for (const plan::Layout& layout : instance->layouts)
        hasher.text(print(layout, instance->mesh, instance->graph.symbols()));
      if (run.ok())
        for (const auto* side : {&run->left, &run->right})
          for (const ops::Tensor<ops::Field>& value : *side) put(hasher, value);
    }
    put_values(hasher, std::move(instance).value(), random);
  }
  return hasher.digest();
}

}  // namespace weft::rule
