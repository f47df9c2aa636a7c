// weft/app/explain/head_json.h -- what every EXPLAIN says of its statement, as JSON.
//
//   {"task":"TRAIN","model":"gpt2","indices":{"b":1},"settings":{"precision":"f32"},"cluster":"pod","device":"h100"
#pragma once
#include <nlohmann/json.hpp>

namespace weft::explain {

// Of an Explanation or a DistributedExplanation.
template <class Explained>
nlohmann::ordered_json head_json(const Explained& explanation) {
  nlohmann::ordered_json json = {{"task", explanation.task}, {"model", explanation.model}};
  json["indices"] = nlohmann::ordered_json::object();
  for (const auto& [name, size] : explanation.sizes) json["indices"][name] = size;
  json["settings"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : explanation.settings) json["settings"][name] = value;
  json["cluster"] = explanation.cluster.name;
  json["device"] = explanation.cluster.device.name;
  return json;
}

}  // namespace weft::explain
