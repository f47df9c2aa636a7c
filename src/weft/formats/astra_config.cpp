#include "weft/formats/astra_config.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/formats/json_node.h"

namespace weft::formats {
namespace {

using sim::TraceAlgorithm;
using sim::TraceDimension;

constexpr double kGigabyte = 1024.0 * 1024 * 1024;
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kMostText = 1 << 20;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// "[ a, b ]" or "a".
std::vector<std::string_view> read_list(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']') && text.size() >= 2)
    text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    items.push_back(trim(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return items;
}

using Lists = std::map<std::string_view, std::vector<std::string_view>, std::less<>>;

// Reads lines of "key: value"; no other YAML.
Result<Lists> read_lists(std::string_view yml) {
  if (yml.size() > kMostText) return user_error("a network file of more than 1 MiB");
  Lists lists;
  for (std::size_t at = 0, number = 1; at < yml.size(); ++number) {
    const std::size_t end = std::min(yml.find('\n', at), yml.size());
    std::string_view line = yml.substr(at, end - at);
    at = end + 1;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty() || line == "---") continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      return user_error(
          fmt::format("line {}: expected \"key: [ .. ]\", found {}", number, line.substr(0, 40)));
    if (!lists.emplace(trim(line.substr(0, colon)), read_list(trim(line.substr(colon + 1)))).second)
      return user_error(fmt::format("line {}: {} is given twice", number, line.substr(0, colon)));
  }
  return lists;
}

Result<double> read_config_number(std::string_view key, std::string_view text) {
  if (const auto value = read_number<double>(text)) return *value;
  return user_error(fmt::format("{}: expected a number, found {}", key, text.substr(0, 40)));
}

Result<TraceDimension::Kind> read_kind(std::string_view text) {
  constexpr std::string_view kNames[] = {"Ring", "Switch", "FullyConnected"};
  using enum TraceDimension::Kind;
  if (text == kNames[0]) return ring;
  if (text == kNames[1]) return switched;
  if (text == kNames[2]) return fully_connected;
  std::string hint = did_you_mean(text, kNames);
  return user_error(
      fmt::format("topology: expected Ring, Switch or FullyConnected, found {}", text.substr(0, 40)), hint);
}

Result<std::vector<TraceAlgorithm>> read_algorithms(const JsonNode& top, const char* key) {
  std::vector<TraceAlgorithm> algorithms;
  if (!top.has(key)) return algorithms;
  WEFT_TRY(words, top.texts(key));
  for (const std::string_view word : words) {
    using enum TraceAlgorithm;
    if (word == "ring" || word == "oneRing")
      algorithms.push_back(ring);
    else if (word.starts_with("direct") || word == "oneDirect")
      algorithms.push_back(direct);
    else if (word == "halvingDoubling" || word == "oneHalvingDoubling")
      algorithms.push_back(halving_doubling);
    else if (word == "doubleBinaryTree")
      algorithms.push_back(double_binary_tree);
    else
      return user_error(fmt::format("{}: unknown algorithm: {}", key, word.substr(0, 40)),
                        "ring, direct, halvingDoubling or doubleBinaryTree");
  }
  return algorithms;
}

}  // namespace

Result<sim::TraceNetwork> parse_astra_network(std::string_view yml) {
  WEFT_TRY(lists, read_lists(yml));
  constexpr std::string_view kKeys[] = {"topology", "npus_count", "bandwidth", "latency"};
  for (const std::string_view key : kKeys) {
    if (!lists.contains(key))
      return user_error(fmt::format("the network has no {}", key),
                        fmt::format("{}: [ .. ], one for each dimension", key));
  }
  const std::size_t dimensions = lists["topology"].size();
  if (dimensions > kMostDimensions)
    return user_error(fmt::format("a network of {} dimensions: at most {}", dimensions, kMostDimensions));
  sim::TraceNetwork network;
  for (std::size_t d = 0; d < dimensions; ++d) {
    double numbers[3] = {};
    for (std::size_t k = 0; k < 3; ++k) {
      const auto& list = lists[kKeys[k + 1]];
      if (list.size() != dimensions)
        return user_error(
            fmt::format("topology has {} dimensions, {} has {}", dimensions, kKeys[k + 1], list.size()));
      WEFT_TRY(number, read_config_number(kKeys[k + 1], list[d]));
      numbers[k] = number;
    }
    if (numbers[0] < 1 || numbers[0] > (1 << 20) || numbers[0] != std::floor(numbers[0]))
      return user_error(
          fmt::format("npus_count: expected a whole number, found {}", lists["npus_count"][d].substr(0, 40)));
    WEFT_TRY(kind, read_kind(lists["topology"][d]));
    network.dimensions.push_back(
        {kind, static_cast<std::int32_t>(numbers[0]), numbers[1] * kGigabyte, numbers[2] * 1e-9});
  }
  WEFT_TRY_STATUS(sim::check(network));
  return network;
}

Result<sim::TraceSystem> parse_astra_system(std::string_view json) {
  WEFT_TRY(root, parse_json(json));
  const JsonNode top(root);
  WEFT_TRY_STATUS(top.expect_object());
  sim::TraceSystem system;
  constexpr std::int32_t kMostChunks = 1 << 16;
  if (top.has("preferred-dataset-splits")) {
    WEFT_TRY(chunks, top.whole("preferred-dataset-splits", 1, kMostChunks));
    system.chunks = chunks;
  }
  if (top.has("active-chunks-per-dimension")) {
    WEFT_TRY(active, top.whole("active-chunks-per-dimension", 1, kMostChunks));
    system.active_chunks = active;
  }
  WEFT_TRY(endpoint, top.number("endpoint-delay", 0));
  WEFT_TRY(memory, top.number("local-mem-bw", 0));
  WEFT_TRY(peak, top.number("peak-perf", 0));
  WEFT_TRY(roofline, top.number("roofline-enabled", 0));
  WEFT_TRY(replay, top.number("replay-only", 0));
  if (endpoint < 0 || memory < 0 || peak < 0)
    return user_error("endpoint-delay, local-mem-bw and peak-perf must not be negative");
  system.endpoint_seconds = endpoint * 1e-9;
  system.memory_bytes_per_second = memory * 1e9;
  system.operations_per_second = peak * 1e12;
  system.roofline = roofline != 0;
  system.replay = replay != 0;
  if (top.has("collective-optimization")) {
    WEFT_TRY(optimization, top.text("collective-optimization"));
    system.whole_all_reduces = optimization == "baseline";
  }
  WEFT_TRY(all_reduce, read_algorithms(top, "all-reduce-implementation"));
  WEFT_TRY(all_gather, read_algorithms(top, "all-gather-implementation"));
  WEFT_TRY(reduce_scatter, read_algorithms(top, "reduce-scatter-implementation"));
  WEFT_TRY(all_to_all, read_algorithms(top, "all-to-all-implementation"));
  system.all_reduce = std::move(all_reduce);
  system.all_gather = std::move(all_gather);
  system.reduce_scatter = std::move(reduce_scatter);
  system.all_to_all = std::move(all_to_all);
  return system;
}

}  // namespace weft::formats
