#include "weft/planner/search/pipeline/cut_layers.h"

#include <algorithm>
#include <numeric>

#include "weft/parallel/pipeline/cut_parts.h"

namespace weft::search {
namespace {

bool begins_layer(std::span<const std::int32_t> layers, std::size_t part) {
  return layers[part] != 0 && (part == 0 || layers[part - 1] != layers[part]);
}

}  // namespace

std::vector<std::int32_t> layers_of_parts(const PartCosts& costs) {
  constexpr double kWhole = 1 - 1e-6;  // shares of a layer add up to 1
  std::vector<std::int32_t> layers;
  std::int32_t number = 1;
  double share = 0;
  for (const PartCost& cost : costs) {
    layers.push_back(cost.layers > 0 ? number : 0);
    share += cost.layers;
    if (share < kWhole) continue;
    ++number;
    share = 0;
  }
  return layers;
}

std::int64_t count_layers(std::span<const std::int32_t> layers) {
  return layers.empty() ? 0 : *std::ranges::max_element(layers);
}

std::optional<std::vector<std::size_t>> cut_layers(std::span<const std::int32_t> layers,
                                                   std::span<const std::int64_t> of_runs) {
  if (of_runs.empty() ||
      std::accumulate(of_runs.begin(), of_runs.end(), std::int64_t{0}) != count_layers(layers))
    return std::nullopt;
  std::vector<std::size_t> begins;  // of layers
  std::size_t after = layers.size();
  for (std::size_t p = 0; p < layers.size(); ++p) {
    if (begins_layer(layers, p)) begins.push_back(p);
    if (layers[p] != 0) after = p + 1;
  }
  std::vector<std::size_t> ends;
  std::int64_t passed = 0;
  for (std::size_t r = 0; r + 1 < of_runs.size(); ++r) {
    if (of_runs[r] < 0) return std::nullopt;
    passed += of_runs[r];
    const auto next = static_cast<std::size_t>(passed);
    ends.push_back(next < begins.size() ? begins[next] : after);
    if (ends.back() <= (r == 0 ? 0 : ends[r - 1])) return std::nullopt;
  }
  if (of_runs.back() < 0 || (!ends.empty() && ends.back() >= layers.size())) return std::nullopt;
  ends.push_back(layers.size());
  return ends;
}

std::optional<std::vector<std::size_t>> cut_equal_layers(std::span<const std::int32_t> layers,
                                                         std::size_t positions) {
  const std::int64_t count = count_layers(layers), runs = static_cast<std::int64_t>(positions);
  if (runs == 0 || count == 0 || count % runs != 0) return std::nullopt;
  return cut_layers(layers, std::vector<std::int64_t>(positions, count / runs));
}

std::optional<std::vector<std::size_t>> cut_between_layers(std::span<const std::int32_t> layers,
                                                           std::span<const double> work,
                                                           std::size_t positions) {
  std::vector<std::size_t> ends;  // of layers and of parts outside them
  std::vector<double> of_each;
  for (std::size_t p = 0; p < layers.size(); ++p) {
    if (layers[p] == 0 || begins_layer(layers, p)) {
      ends.push_back(p);
      of_each.push_back(0);
    }
    ends.back() = p + 1;
    of_each.back() += work[p];
  }
  if (positions == 0 || ends.size() < positions) return std::nullopt;
  std::vector<std::size_t> cuts;
  for (const std::size_t end : pipeline::cut_parts(of_each, positions)) cuts.push_back(ends[end - 1]);
  return cuts;
}

}  // namespace weft::search
