#include "weft/runtime/run/feed_inputs.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::run {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Whether the results are copies of elements of the operands, or of other ranks' operands.
bool hands_on(const NodeView& node) {
  const plan::Operator* const op = &node.op();
  return op->is_view() || op == &ops::slice() || op == &ops::transpose() || op == &ops::concat() ||
         op == &ops::local_exchange() || ops::find_communication(*op) != nullptr;
}

// Finds the consumers of a value, looking through copies, and sets the input's limit from them.
void find_limit(const plan::Graph& graph, ValueId value, FeedInput& input) {
  for (std::size_t n = graph.value(value).producer.value + 1; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (node.input(i) != value) continue;
      std::int64_t limit = 0;
      if (&node.op() == &ops::gather() && i == 0) limit = node.input_type(1).size_of(node.symbol(0));
      const bool is_linear = &node.op() == &ops::linear_cross_entropy();
      if ((&node.op() == &ops::cross_entropy() && i == 1) || (is_linear && i == 2)) {
        limit = node.input_type(is_linear ? 1 : 0).size_of(node.symbol(0));
        input.may_be_negative = true;
      }
      // If classes are sliced, the loss is decomposed; the op that counts its rows still identifies
      // labels.
      if (&node.op() == &ops::labelled()) {
        limit = node.integer(0);
        input.may_be_negative = true;
      }
      if (limit > 0) input.limit = input.limit == 0 ? limit : std::min(input.limit, limit);
      if (hands_on(node)) find_limit(graph, node.result(node.result_count() > 1 ? i : 0), input);
    }
  }
}

bool begin_alike(const FeedInput& a, const FeedInput& b) {
  return a.type.rank() > 0 && b.type.rank() > 0 && a.type.dims[0].index == b.type.dims[0].index;
}

}  // namespace

std::vector<FeedInput> inputs_of(const plan::Graph& graph) {
  std::vector<FeedInput> inputs;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::input()) continue;
    inputs.push_back({std::string(node.word(0)), node.result_type(0), node.result(0)});
    if (plan::is_integer(inputs.back().type.dtype)) find_limit(graph, node.result(0), inputs.back());
  }
  return inputs;
}

bool has_batch(std::span<const FeedInput> inputs) {
  return std::ranges::all_of(inputs, [&](const FeedInput& input) { return begin_alike(input, inputs[0]); });
}

Status check_inputs(const plan::Graph& graph, std::span<const FeedInput> inputs) {
  if (!inputs.empty()) return {};
  return user_error(fmt::format("{} has no INPUT to feed data to", graph.name),
                    "declare an INPUT in the model");
}

Result<std::int64_t> batch_of(const plan::Graph& graph, std::span<const FeedInput> inputs) {
  WEFT_TRY_STATUS(check_inputs(graph, inputs));
  for (const FeedInput& input : inputs) {
    if (begin_alike(input, inputs[0])) continue;
    return user_error(fmt::format("every input must begin with the batch index: {} is {}, {} is {}",
                                  inputs[0].name, plan::print(inputs[0].type, graph.symbols()), input.name,
                                  plan::print(input.type, graph.symbols())),
                      "put the batch index first");
  }
  return inputs[0].type.dims[0].size;
}

std::vector<InputMemory> memory_of(exec::Rank& rank, std::span<const std::string> names) {
  const std::vector<program::Port>& ports = rank.program().inputs;
  std::vector<InputMemory> inputs(names.size());  // no rows of an input that the program does not read
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto port = std::ranges::find(ports, names[i], &program::Port::name); port != ports.end())
      inputs[i] = {port->place.dtype, rank.input(*port), 0,
                   port->place.axes.empty() ? 1 : port->place.axes[0].size};
  return inputs;
}

std::string file_recipe(std::span<const DataFile> files, const FeedOptions& options) {
  auto list = nlohmann::json::array();
  for (const DataFile& file : files) list.push_back({file.input, file.path});
  return nlohmann::json{{"files", list},
                        {"holdout", options.holdout},
                        {"seed", options.seed},
                        {"partial_batches", options.partial_batches},
                        {"holdout_drawn", options.holdout_drawn}}
      .dump();
}

}  // namespace weft::run
