#include "weft/plan/ops/interpret.h"

#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sources.h"
#include "weft/plan/ops/uses.h"

namespace weft::ops {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::ValueId;

template <class T>
Result<const Tensor<T>*> find_source(const plan::NodeView& node, const Sources<T>& sources) {
  const std::string_view name = node.word(0);
  const Tensor<T>* tensor = sources(name);
  if (tensor == nullptr) return user_error(fmt::format("no value given for {} {}", node.op().name(), name));
  const plan::Type type = node.result_type(0);
  if (tensor->sizes != sizes_of(type.dims) || tensor->elements() != type.elements())
    return user_error(fmt::format("{} {} has sizes [{}] but the plan expects {}", node.op().name(), name,
                                  fmt::join(tensor->sizes, ", "), print(type, node.graph().symbols())));
  return tensor;
}

}  // namespace

template <class T>
std::vector<Tensor<T>> evaluate(const plan::NodeView& node, std::span<const Tensor<T>* const> inputs,
                                const Numbers<T>& numbers) {
  std::vector<Tensor<T>> results(node.result_count());
  for (std::size_t k = 0; k < results.size(); ++k) {
    const plan::Type type = node.result_type(k);
    results[k].sizes = sizes_of(type.dims);
    results[k].data.assign(static_cast<std::size_t>(type.elements()), T());
  }
  Evaluation<T> at(node, inputs, results, numbers);
  operator_of(node).reference(at);
  if constexpr (std::is_same_v<T, Rounded>)
    for (std::size_t k = 0; numbers.rounds && k < results.size(); ++k)
      for (Rounded& element : results[k].data) element = numbers.stored(element, node.result_type(k).dtype);
  return results;
}

template <class T>
Result<std::vector<Tensor<T>>> interpret(const Graph& graph, const Sources<T>& sources,
                                         const Numbers<T>& numbers, std::int64_t max_elements) {
  const std::vector<std::size_t> last = last_uses(graph);
  std::vector<Tensor<T>> computed(graph.value_count());
  std::vector<const Tensor<T>*> values(graph.value_count(), nullptr);

  std::vector<const Tensor<T>*> inputs;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(NodeId(id));
    if (!is_needed(node, last)) continue;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (node.result_type(k).elements() > max_elements)
        return user_error(fmt::format("{} is too large to interpret: {} elements, the limit is {}",
                                      node.op().name(), node.result_type(k).elements(), max_elements));
    if (is_source(node.op())) {
      WEFT_TRY(tensor, find_source(node, sources));
      values[node.result(0).value] = tensor;
      continue;
    }
    if (&node.op() == &local_exchange())
      return user_error("exchange needs the other ranks", "interpret the plan of the whole mesh");
    inputs.clear();
    for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
    std::vector<Tensor<T>> results = evaluate<T>(node, inputs, numbers);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t at = node.result(k).value;
      if (last[at] == kNever) continue;
      computed[at] = std::move(results[k]);
      values[at] = &computed[at];
    }
    for (const ValueId input : node.node().inputs)
      if (last[input.value] == id + 1) computed[input.value] = {};
  }

  std::vector<Tensor<T>> outputs;
  for (const plan::Output& output : graph.outputs()) outputs.push_back(*values[output.value.value]);
  return outputs;
}

template std::vector<Tensor<float>> evaluate(const plan::NodeView&, std::span<const Tensor<float>* const>,
                                             const Numbers<float>&);
template std::vector<Tensor<double>> evaluate(const plan::NodeView&, std::span<const Tensor<double>* const>,
                                              const Numbers<double>&);
template std::vector<Tensor<Field>> evaluate(const plan::NodeView&, std::span<const Tensor<Field>* const>,
                                             const Numbers<Field>&);
template std::vector<Tensor<Rounded>> evaluate(const plan::NodeView&, std::span<const Tensor<Rounded>* const>,
                                               const Numbers<Rounded>&);
template Result<std::vector<Tensor<float>>> interpret(const Graph&, const Sources<float>&,
                                                      const Numbers<float>&, std::int64_t);
template Result<std::vector<Tensor<double>>> interpret(const Graph&, const Sources<double>&,
                                                       const Numbers<double>&, std::int64_t);
template Result<std::vector<Tensor<Field>>> interpret(const Graph&, const Sources<Field>&,
                                                      const Numbers<Field>&, std::int64_t);
template Result<std::vector<Tensor<Rounded>>> interpret(const Graph&, const Sources<Rounded>&,
                                                        const Numbers<Rounded>&, std::int64_t);

}  // namespace weft::ops
