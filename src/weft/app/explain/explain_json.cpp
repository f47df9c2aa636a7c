#include <nlohmann/json.hpp>

#include "weft/app/explain/explanation.h"
#include "weft/app/explain/head_json.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/whole.h"
#include "weft/plan/graph/hash.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Explanation& explanation, const Entry& entry) {
  const plan::Graph& graph = *explanation.graph;
  Json json = {{"step", entry.name}};
  if (entry.repeated) json["times"] = entry.times;
  if (!entry.nodes.empty()) {
    Json operators = Json::array();
    for (const plan::NodeId id : entry.nodes) operators.push_back(graph.node(id).op->name());
    json["operators"] = std::move(operators);
    json["result"] = print(graph.type(graph.result(entry.nodes.back())), graph.symbols());
  }
  json["multiply_adds"] = whole(entry.work.multiply_adds);
  json["flops"] = whole(entry.work.flops);
  json["bytes_read"] = whole(entry.work.bytes_read);
  json["bytes_written"] = whole(entry.work.bytes_written);
  if (entry.kept > 0) json["bytes_kept"] = whole(entry.kept);
  json["seconds_at_best"] = entry.seconds;
  if (explanation.measurement) json["seconds_measured"] = entry.measured;
  json["bound_by"] = cost::name(entry.limit());
  if (!entry.children.empty()) {
    Json steps = Json::array();
    for (const Entry& child : entry.children) steps.push_back(to_json(explanation, child));
    json["steps"] = std::move(steps);
  }
  return json;
}

Json to_json(const FirstAnswer& answer) {
  return {{"seconds", answer.seconds},         {"seconds_one_after_the_other", answer.one_after_the_other},
          {"seconds_copying", answer.copying}, {"seconds_computing", answer.computing},
          {"groups", answer.groups},           {"bytes", whole(answer.bytes)}};
}

Json to_json(const Latency& latency) { return {{"median", latency.median}, {"p99", latency.p99}}; }
Json to_json(const Urgency& urgency) {
  return {{"seconds_alone", to_json(urgency.alone)},
          {"seconds_in_turn", to_json(urgency.in_turn)},
          {"seconds_going_first", to_json(urgency.going_first)},
          {"seconds_given_way", to_json(urgency.given_way)},
          {"step_seconds", urgency.step},
          {"step_seconds_giving_way", urgency.step_giving_way}};
}

// Of nodes and phases the seconds are workers' time; of the step, the clock's.
Json to_json(const plan::Graph& graph, const Measurement& measurement) {
  const program::Attribution& times = measurement.times;
  Json json = {{"seconds_a_step", times.step_seconds},
               {"steps", times.steps},
               {"threads", times.workers},
               {"seconds_busy", times.busy_seconds},
               {"busy", times.busy()},
               {"seconds_other", other_seconds(graph, times)},
               {"memory_bytes", whole(measurement.memory_bytes)},
               {"memory_lower_bound", whole(measurement.memory_lower_bound)}};
  if (measurement.urgency) json["urgency"] = to_json(*measurement.urgency);
  if (measurement.first_answer) json["first_answer"] = to_json(*measurement.first_answer);
  return json;
}

}  // namespace

std::string print_json(const Explanation& explanation) {
  Json json = head_json(explanation);
  json["devices_planned"] = 1;
  json["parameters"] = count_parameters(*explanation.graph);
  json["nodes"] = explanation.graph->node_count();
  json["plan_hash"] = plan::structural_hash(*explanation.graph).hex();
  Json phases = Json::array();
  double seconds = 0;
  for (const plan::Phase phase : explanation.phases) {
    const Entry entry = outline(explanation, phase);
    seconds += entry.seconds;
    phases.push_back(to_json(explanation, entry));
  }
  json["seconds_at_best"] = seconds;
  if (explanation.predicted_seconds > 0)
    json["seconds_predicted"] = explanation.predicted_seconds + explanation.spilled_seconds;
  if (!explanation.within_limit.empty()) json["within_limit"] = explanation.within_limit;
  if (explanation.spilled_bytes > 0) {
    json["spilled_bytes"] = whole(explanation.spilled_bytes);
    json["seconds_of_spilled"] = explanation.spilled_seconds;
  }
  json["source"] = "roofline of data-sheet figures";
  if (explanation.measurement) json["measured"] = to_json(*explanation.graph, *explanation.measurement);
  if (explanation.rewriting) {
    const Rewriting& rewriting = *explanation.rewriting;
    json["rules"] = {{"seconds_before", rewriting.seconds_before},
                     {"seconds_after", rewriting.seconds_after},
                     {"stopped", search::name(rewriting.stopped)},
                     {"trail", trail_json(rewriting.trail)}};
  }
  if (explanation.verbose) json["stages"] = stages_json(explanation.stages);
  json["memory"] = Json::object();
  for (const MemoryItem& item : explanation.memory) json["memory"][item.what] = whole(item.bytes);
  json["hints"] = explanation.hints;
  for (const program::ByDefinition& one : explanation.by_definition)
    json["by_definition"].push_back({{"operator", one.op}, {"why", one.why}, {"count", one.count}});
  json["phases"] = std::move(phases);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
