#include "weft/run/algorithm_list.h"

#include <nlohmann/json.hpp>

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

Result<std::vector<program::ChosenAlgorithm>> read_algorithms(const std::string& text) try {
  std::vector<program::ChosenAlgorithm> algorithms;
  for (const nlohmann::json& from : nlohmann::json::parse(text)) {
    program::ChosenAlgorithm& algorithm = algorithms.emplace_back();
    algorithm.name = from.at("name");
    algorithm.priority = static_cast<collective::Priority>(from.at("priority").get<int>());
    if (from.contains("protocol"))
      algorithm.protocol = static_cast<collective::Protocol>(from["protocol"].get<int>());
  }
  return algorithms;
} catch (const nlohmann::json::exception&) {
  return user_error("expected a list of algorithms");
}

}  // namespace weft::run
