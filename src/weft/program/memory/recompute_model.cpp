#include "weft/program/memory/recompute_model.h"

#include <algorithm>

namespace weft::memory {

std::int64_t RecomputeModel::read_by_backward(std::size_t node) const {
  std::int64_t bytes = size[node];
  for (const std::int32_t input : inputs[node]) bytes += size[static_cast<std::size_t>(input)];
  return bytes;
}

std::int64_t RecomputeModel::needed_at_once() const {
  std::int64_t most = 0;
  for (std::size_t v = 0; v < nodes; ++v) most = std::max(most, read_by_backward(v) + gradients_during[v]);
  return most;
}

RecomputeModel model_of(std::span<const RecomputeNode> nodes, std::size_t begin, std::size_t end,
                        std::int64_t base_gradient, bool loss) {
  RecomputeModel model;
  model.nodes = end - begin;
  model.loss = loss;
  model.inputs.resize(model.nodes);
  model.readers.resize(model.nodes);
  std::vector<bool> reads_base(model.nodes);
  for (std::size_t v = 0; v < model.nodes; ++v) {
    const RecomputeNode& node = nodes[begin + v];
    model.forward.push_back(node.forward);
    model.size.push_back(node.size);
    model.forward_bytes.push_back(node.size);
    for (const std::int32_t input : node.inputs) {
      const std::int64_t place = input - static_cast<std::int64_t>(begin);
      if (place >= 0)
        model.inputs[v].push_back(static_cast<std::int32_t>(place));
      else
        reads_base[v] = reads_base[v] || input >= 0;
    }
    if (reads_base[v]) model.last_base_reader = static_cast<std::int32_t>(v);
    std::ranges::sort(model.inputs[v]);
    model.inputs[v].erase(std::unique(model.inputs[v].begin(), model.inputs[v].end()), model.inputs[v].end());
    for (const std::int32_t input : model.inputs[v])
      model.readers[static_cast<std::size_t>(input)].push_back(static_cast<std::int32_t>(v));
  }
  model.gradients.resize(model.nodes);
  model.gradients_during.resize(model.nodes);
  std::vector<bool> live(model.nodes);
  bool base_lives = false;
  std::int64_t bytes = model.nodes == 0 ? 0 : model.size.back();
  for (std::size_t v = model.nodes; v-- > 0;) {
    model.gradients[v] = bytes;
    for (const std::int32_t input : model.inputs[v]) {
      const auto u = static_cast<std::size_t>(input);
      if (!live[u]) bytes += model.size[u];
      live[u] = true;
    }
    if (reads_base[v] && !base_lives) bytes += base_gradient, base_lives = true;
    model.gradients_during[v] = bytes;
    bytes -= model.size[v];
  }
  return model;
}

std::vector<std::int32_t> cut_nodes(std::span<const RecomputeNode> nodes) {
  std::vector<std::int32_t> last_reader(nodes.size());
  for (std::size_t v = 0; v < nodes.size(); ++v)
    for (const std::int32_t input : nodes[v].inputs)
      if (input >= 0) last_reader[static_cast<std::size_t>(input)] = static_cast<std::int32_t>(v);
  std::vector<std::int32_t> cuts;
  std::int32_t reached = 0;  // the last reader of any earlier node
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    const auto place = static_cast<std::int32_t>(v);
    if (reached <= place) cuts.push_back(place);
    reached = std::max(reached, last_reader[v]);
  }
  return cuts;
}

}  // namespace weft::memory
