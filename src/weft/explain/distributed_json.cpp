#include <nlohmann/json.hpp>

#include "weft/explain/distributed.h"
#include "weft/explain/head_json.h"
#include "weft/explain/operator_list.h"
#include "weft/explain/whole.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const sim::MemoryByKind& memory) {
  Json json = Json::object();
  for (const auto& [what, bytes] : memory.kinds()) json[std::string(what)] = whole(bytes);
  return json;
}

// What every plan says of itself, chosen or not.
Json to_json(const DistributedExplanation& explanation, const distribute::Distribution& distribution,
             const search::Evaluation& evaluation) {
  Json sent = Json::object();
  for (const sim::AxisTraffic& axis : evaluation.traffic) sent[axis.axis] = whole(axis.bytes);
  return {{"plan", print(distribution)},
          {"step_seconds", evaluation.seconds},
          {"mfu", explanation.utilization(evaluation.seconds)},
          {"memory_per_rank_bytes", whole(evaluation.peak_bytes)},
          {"memory", to_json(evaluation.memory)},
          {"compute_seconds", evaluation.compute_seconds},
          {"communication_seconds", evaluation.communication_seconds},
          {"exposed_communication_seconds", evaluation.exposed_communication_seconds},
          {"bytes_sent_by_axis", std::move(sent)}};
}

Json to_json(const DistributedExplanation& explanation, const Entry& entry) {
  const plan::Graph& graph = *explanation.local;
  Json json = {{"step", entry.name}};
  if (entry.repeated) json["times"] = entry.times;
  if (!entry.nodes.empty()) {
    Json operators = Json::array();
    for (const plan::NodeId id : entry.nodes) operators.push_back(shown_name(graph.view(id)));
    json["operators"] = std::move(operators);
    json["result"] = print(graph.type(graph.result(entry.nodes.back())), graph.symbols());
  }
  json["seconds_predicted"] = entry.measured;
  if (!entry.children.empty()) {
    Json steps = Json::array();
    for (const Entry& child : entry.children) steps.push_back(to_json(explanation, child));
    json["steps"] = std::move(steps);
  }
  return json;
}

}  // namespace

std::string print_json(const DistributedExplanation& explanation) {
  const search::DistributionChoice& choice = *explanation.choice;
  Json json = head_json(explanation);
  json["devices"] = explanation.cluster.devices();
  json.update(to_json(explanation, choice.distribution, choice.chosen.evaluation()));
  json["lower_bound_seconds"] = choice.lower_bound_seconds;
  json["bound_by"] = choice.chosen.prediction.bound;
  Json sources = Json::object();
  for (std::size_t s = 0; s < cost::kSources; ++s)
    if (const double seconds = choice.chosen.prediction.seconds_by_source[s]; seconds > 0)
      sources[std::string(name(static_cast<cost::Source>(s)))] = seconds;
  json["compute_seconds_by_source"] = std::move(sources);
  Json collectives = Json::array();
  for (const sim::PricedCollective& one : choice.chosen.prediction.collectives)
    collectives.push_back({{"kind", name(one.kind)},
                           {"axis", one.axis},
                           {"bytes", one.bytes},
                           {"times", one.times},
                           {"seconds", one.price.seconds()},
                           {"algorithm", one.price.algorithm},
                           {"source", name(one.price.source)}});
  json["collectives"] = std::move(collectives);
  json["search_seconds"] = choice.search_seconds;
  json["search"] = {{"estimates", choice.outcome.estimates}, {"meshes", choice.outcome.meshes},
                    {"failed", choice.outcome.failed},       {"layers", choice.layers},
                    {"layers_folded_to", choice.folded},     {"stopped", search::name(choice.outcome.ended)}};
  json["search"]["ruled_out"] = choice.outcome.ruled_out;
  json["search"]["parts"] = choice.outcome.parts;
  json["search"]["from_plan_cache"] = choice.from_plan_cache;
  json["lower_bound_by"] = choice.lower_bound_why;
  json["proven"] = explanation.proven;
  json["proof"] = explanation.proof;
  Json alternatives = Json::array();
  for (const search::Alternative& other : choice.alternatives) {
    Json row = {{"name", other.name}};
    row.update(to_json(explanation, other.distribution, other.evaluation));
    row["lower_bound_seconds"] = choice.lower_bound_seconds;
    row["fits"] = other.fits;
    row["why_not"] = other.why_not;
    alternatives.push_back(std::move(row));
  }
  json["alternatives"] = std::move(alternatives);
  if (explanation.trail) {
    Json trail = Json::array();
    for (const search::Improvement& step : choice.outcome.trail)
      trail.push_back({{"plan", step.to},
                       {"step_seconds", step.after.seconds},
                       {"memory_per_rank_bytes", step.after.bytes}});
    json["trail"] = std::move(trail);
  }
  if (const auto& measured = explanation.measured)
    json["measured"] = {{"step_seconds", measured->seconds},
                        {"steps", measured->steps},
                        {"ranks", measured->ranks},
                        {"exposed_communication_seconds", measured->exposed_communication_seconds},
                        {"memory_per_rank_bytes", whole(measured->memory_bytes)},
                        {"median_error_before", measured->error_before},
                        {"median_error_after", measured->error_after},
                        {"step_seconds_predicted_after", measured->predicted_after}};
  json["hints"] = explanation.hints;
  Json phases = Json::array();
  for (const Phase& phase : explanation.phases) {
    Entry entry = outline(*explanation.local, phase.begin, phase.end, explanation.cluster.device,
                          explanation.predicted);
    entry.name = phase.name;
    phases.push_back(to_json(explanation, entry));
  }
  json["phases"] = std::move(phases);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
