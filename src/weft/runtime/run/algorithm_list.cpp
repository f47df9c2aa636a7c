#include "weft/runtime/run/algorithm_list.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/runtime/run/json_number.h"

namespace weft::run {

std::string print_algorithms(std::span<const program::ChosenAlgorithm> algorithms) {
  nlohmann::json list = nlohmann::json::array();
  for (const program::ChosenAlgorithm& algorithm : algorithms) {
    nlohmann::json made = {{"name", algorithm.name}, {"priority", static_cast<int>(algorithm.priority)}};
    if (algorithm.protocol) made["protocol"] = static_cast<int>(*algorithm.protocol);
    list.push_back(std::move(made));
  }
  return list.dump();
}

Result<std::vector<program::ChosenAlgorithm>> read_algorithms(const std::string& text) {
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return user_error("expected a list of algorithms, found something else");
  std::vector<program::ChosenAlgorithm> algorithms;
  for (const nlohmann::json& from : list) {
    const auto field = [&](const char* key) {
      return from.is_object() ? from.value(key, nlohmann::json()) : nlohmann::json();
    };
    const auto wrong = [&](const char* key, std::string_view expected) {
      return user_error(
          fmt::format("algorithm {} of a list: {}: expected {}, found {}", algorithms.size() + 1, key,
                      expected, field(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    };
    if (!field("name").is_string()) return wrong("name", "a string");
    program::ChosenAlgorithm algorithm;
    algorithm.name = field("name").get<std::string>();
    const auto priority = read_enum(field("priority"), collective::Priority::low);
    if (!priority) return wrong("priority", "0, 1 or 2");
    algorithm.priority = *priority;
    if (from.contains("protocol")) {
      algorithm.protocol = read_enum(field("protocol"), collective::Protocol::ll128);
      if (!algorithm.protocol) return wrong("protocol", "0, 1 or 2");
    }
    algorithms.push_back(std::move(algorithm));
  }
  return algorithms;
}

}  // namespace weft::run
