#include <nlohmann/json.hpp>

#include "weft/app/explain/codecs.h"
#include "weft/app/explain/distributed.h"
#include "weft/app/explain/head_json.h"
#include "weft/app/explain/operator_list.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/whole.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

// What every plan says of itself, chosen or not.
Json to_json(const DistributedExplanation& explanation, const distribute::Distribution& distribution,
             const search::Evaluation& evaluation) {
  Json json = {{"plan", print(distribution)}};
  json.update(step_json(evaluation, explanation.utilization(evaluation.seconds)));
  return json;
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
  if (explanation.hosts) {
    json["hosts"] = explanation.hosts->ranks;
    if (explanation.hosts->ranks.size() > 1)
      json["network"] = {{"bytes_per_second", explanation.hosts->bytes_per_second},
                         {"latency_seconds", explanation.hosts->latency_seconds},
                         {"measured", explanation.hosts->measured}};
  }
  json.update(to_json(explanation, choice.distribution, choice.chosen.evaluation()));
  json["parallelism"] = explanation.parallelism;
  if (explanation.spilled_seconds > 0) json["seconds_of_spilled"] = explanation.spilled_seconds;
  json["lower_bound_seconds"] = choice.lower_bound_seconds;
  json.update(reasons_json(choice.chosen.prediction));
  json["planning_seconds"] = explanation.planning_seconds;
  json["search_seconds"] = choice.search_seconds;
  json["search"] = {{"estimates", choice.outcome.estimates}, {"meshes", choice.outcome.meshes},
                    {"failed", choice.outcome.failed},       {"layers", choice.layers},
                    {"layers_folded_to", choice.folded},     {"stopped", search::name(choice.outcome.ended)}};
  json["search"]["ruled_out"] = choice.outcome.ruled_out;
  json["search"]["parts"] = choice.outcome.parts;
  json["search"]["from_plan_cache"] = choice.from_plan_cache;
  json["lower_bound_by"] = choice.lower_bound_why;
  if (explanation.verbose) json["stages"] = stages_json(explanation.stages);
  if (!explanation.rules.empty()) json["rules"] = trail_json(explanation.rules);
  if (!explanation.communication_rules.empty())
    json["communication_rules"] = trail_json(explanation.communication_rules);
  if (!explanation.credit.empty()) json["credit"] = explanation.credit;
  if (!explanation.servers.empty()) json["servers"] = explanation.servers;
  if (!explanation.delayed.empty()) json["delay"] = explanation.delayed;
  if (!explanation.averages.empty()) json["sync"] = explanation.averages;
  if (!explanation.coded.empty()) json["codecs"] = codecs_json(explanation.coded);
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
                        {"median_error_before", measured->error_before}};
  if (explanation.measured && explanation.measured->predicted_after > 0)  // else nothing was kept
    json["measured"].update({{"median_error_after", explanation.measured->error_after},
                             {"step_seconds_predicted_after", explanation.measured->predicted_after}});
  json["hints"] = explanation.hints;
  Json phases = Json::array();
  for (const plan::Phase phase : explanation.phases)
    phases.push_back(to_json(
        explanation, outline(*explanation.local, phase, explanation.cluster.device, explanation.predicted)));
  json["phases"] = std::move(phases);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
