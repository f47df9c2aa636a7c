#include "weft/rules/rule/stored_run.h"

#include <cmath>
#include <limits>

#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/rounded_constants.h"

namespace weft::rule {
namespace {

using ops::Rounded;
using ops::Tensor;

Rounded stored_as(Rounded x, plan::DType dtype, Exponents exponents) {
  if (!x.is_known()) return x;
  if (plan::is_integer(dtype)) return ops::Numbers<Rounded>{.rounds = true}.stored(x, dtype);
  const double value = round_to_dtype(dtype, x.value, exponents == Exponents::unbounded);
  if (std::isinf(value)) return {value, std::numeric_limits<double>::infinity()};
  return {value, x.error + std::abs(value - x.value)};
}

}  // namespace

std::vector<Tensor<Rounded>> evaluate_all(const plan::Graph& graph, const RealInputs& inputs,
                                          const ops::Numbers<Rounded>& numbers,
                                          std::optional<Exponents> stored) {
  std::vector<Tensor<Rounded>> values(graph.value_count());
  std::size_t next = 0;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (&node.op() == &ops::input()) {
      values[node.result(0).value] = inputs[next++];
      continue;
    }
    std::vector<const Tensor<Rounded>*> operands;
    for (std::size_t i = 0; i < node.input_count(); ++i) operands.push_back(&values[node.input(i).value]);
    std::vector<Tensor<Rounded>> results = ops::evaluate<Rounded>(node, operands, numbers);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (stored)
        for (Rounded& element : results[k].data)
          element = stored_as(element, node.result_type(k).dtype, *stored);
      values[node.result(k).value] = std::move(results[k]);
    }
  }
  std::vector<Tensor<Rounded>> outputs;
  for (const plan::Output& output : graph.outputs()) outputs.push_back(values[output.value.value]);
  return outputs;
}

StoredRun run_stored(const RuleInstance& instance, const RealInputs& inputs, Exponents exponents,
                     std::uint64_t key) {
  ops::RoundedNotes notes;
  auto all =
      evaluate_all(instance.run_graph(), inputs, {.notes = &notes, .rounds = false, .key = key}, exponents);
  StoredRun run;
  for (std::size_t k = 0; k < all.size(); ++k)
    (k < all.size() / 2 ? run.left : run.right).push_back(std::move(all[k]));
  run.inputs = inputs;
  run.doubt = notes.doubt;
  return run;
}

}  // namespace weft::rule
