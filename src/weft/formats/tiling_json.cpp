#include "weft/formats/tiling_json.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace weft::formats {
namespace {

constexpr std::int32_t kMostTilingNumber = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostTilingOperators = 4096;

Result<std::vector<std::int64_t>> sides(const JsonNode& top, const char* key) {
  WEFT_TRY(read, top.wholes(key, 1, kMostTilingNumber));
  return std::vector<std::int64_t>(read.begin(), read.end());
}

// A list of lists of indices.
Result<std::vector<std::vector<std::int32_t>>> places(const JsonNode& top, const char* key) {
  WEFT_TRY(lists, top.list(key));
  std::vector<std::vector<std::int32_t>> all;
  for (const JsonNode& list : lists) {
    WEFT_TRY(items, list.items());
    std::vector<std::int32_t> numbers;
    for (const JsonNode& item : items) {
      WEFT_TRY(number, item.whole(0, kMostTilingNumber));
      numbers.push_back(number);
    }
    all.push_back(std::move(numbers));
  }
  return all;
}

Result<double> positive(const JsonNode& top, const char* key) {
  WEFT_TRY(there, top.at(key));
  WEFT_TRY(value, top.number(key, 0));
  if (!(value > 0)) return there.error(fmt::format("expected a number above 0, found {}", value));
  return value;
}

Result<double> cost_at(const Json& value, std::size_t place) {
  const Json& costs = value["base_costs"];
  if (!costs[place].is_number())
    return user_error(
        fmt::format("base_costs[{}]: expected a number, found {}", place, costs[place].type_name()));
  return costs[place].get<double>();
}

}  // namespace

Result<memory::TilingProblem> read_tiling_problem(std::string_view text) {
  WEFT_TRY(json, parse_json(text));
  const JsonNode top(json);
  memory::TilingProblem problem;
  WEFT_TRY(widths, sides(top, "widths"));
  problem.widths = std::move(widths);
  WEFT_TRY(heights, sides(top, "heights"));
  problem.heights = std::move(heights);
  WEFT_TRY(inputs, places(top, "inputs"));
  WEFT_TRY(outputs, top.list("outputs"));
  WEFT_TRY(made, places(top, "outputs"));
  WEFT_TRY(costs, top.list("base_costs"));
  WEFT_TRY(types, top.texts("op_types"));
  if (made.size() != inputs.size() || costs.size() != inputs.size() || types.size() != inputs.size())
    return user_error(
        fmt::format("expected as many inputs, outputs, base_costs and op_types, found {}, {}, {} and {}",
                    inputs.size(), made.size(), costs.size(), types.size()));
  if (inputs.size() > kMostTilingOperators)
    return user_error(
        fmt::format("expected at most {} operators, found {}", kMostTilingOperators, inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (made[i].size() != 1)
      return outputs[i].error(fmt::format("expected one tensor, found {}", made[i].size()));
    if (types[i] != "MatMul" && types[i] != "Pointwise")
      return user_error(fmt::format("op_types[{}]: expected MatMul or Pointwise, found '{}'", i, types[i]));
    WEFT_TRY(cost, cost_at(json, i));
    problem.operators.push_back({types[i] == "MatMul", std::move(inputs[i]), made[i].front(), cost});
  }
  WEFT_TRY(capacity, positive(top, "fast_memory_capacity"));
  problem.capacity = static_cast<std::int64_t>(std::min(capacity, 9e18));
  WEFT_TRY(bandwidth, positive(top, "slow_memory_bandwidth"));
  problem.bandwidth = bandwidth;
  WEFT_TRY(native, sides(top, "native_granularity"));
  if (native.size() != 2)
    return user_error(fmt::format("native_granularity: expected two sides, found {}", native.size()));
  problem.native_width = native[0], problem.native_height = native[1];
  WEFT_TRY_STATUS(memory::check(problem));
  return problem;
}

Result<std::vector<memory::TilingStep>> read_tiling_schedule(std::string_view text) {
  WEFT_TRY(json, parse_json(text));
  const JsonNode top(json);
  WEFT_TRY(groups, places(top, "subgraphs"));
  WEFT_TRY(tiles, places(top, "granularities"));
  std::vector<std::vector<std::int32_t>> retained(groups.size());
  if (top.has("tensors_to_retain")) {
    WEFT_TRY(given, places(top, "tensors_to_retain"));
    retained = std::move(given);
  }
  WEFT_TRY(orders, top.optional_list("traversal_orders"));
  if (tiles.size() != groups.size() || retained.size() != groups.size() ||
      (!orders.empty() && orders.size() != groups.size()))
    return user_error(
        fmt::format("expected an entry for each of {} subgraphs, found {} granularities, {} "
                    "tensors_to_retain and {} traversal_orders",
                    groups.size(), tiles.size(), retained.size(), orders.size()));
  std::vector<memory::TilingStep> steps;
  for (std::size_t s = 0; s < groups.size(); ++s) {
    if (tiles[s].size() != 3)
      return user_error(
          fmt::format("granularities[{}]: expected [w, h, k], found {} numbers", s, tiles[s].size()));
    memory::TilingStep step{std::move(groups[s]),   tiles[s][0], tiles[s][1], tiles[s][2],
                            std::move(retained[s]), {}};
    if (!orders.empty() && !json["traversal_orders"][s].is_null()) {
      WEFT_TRY(items, orders[s].items());
      step.order.emplace();
      for (const JsonNode& item : items) {
        WEFT_TRY(tile, item.whole(0, kMostTilingNumber));
        step.order->push_back(tile);
      }
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

Json tiling_schedule_json(const std::vector<memory::TilingStep>& steps, const memory::TilingCost& price) {
  Json json = {{"subgraphs", Json::array()},
               {"granularities", Json::array()},
               {"tensors_to_retain", Json::array()},
               {"traversal_orders", Json::array()},
               {"subgraph_latencies", price.latencies},
               {"total_latency", price.total}};
  for (const memory::TilingStep& step : steps) {
    json["subgraphs"].push_back(step.operators);
    json["granularities"].push_back({step.width, step.height, step.depth});
    json["tensors_to_retain"].push_back(step.retained);
    json["traversal_orders"].push_back(step.order ? Json(*step.order) : Json());
  }
  return json;
}

}  // namespace weft::formats
