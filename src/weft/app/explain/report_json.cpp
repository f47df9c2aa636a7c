// A report as JSON: docs/json.md describes every key.
#include "weft/app/explain/operator_list.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/whole.h"
#include "weft/parallel/distribute/stage_meshes.h"
#include "weft/plan/graph/hash.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

// Incremented when a key changes meaning or is removed.
constexpr int kSchema = 1;

void add_head(const Report& report, Json& json) {
  json = {{"schema", kSchema}, {"task", report.task}, {"model", report.model}};
  json["indices"] = Json::object();
  for (const auto& [name, size] : report.sizes) json["indices"][name] = size;
  json["settings"] = Json::object();
  for (const auto& [name, value] : report.settings) json["settings"][name] = value;
  json["cluster"] = report.cluster.name;
  json["device"] = report.cluster.device.name;
  json["devices"] = report.devices();
}

// A phase or one of its entries. The figures cover all `times` iterations.
Json to_json(const Report& report, const Entry& entry, const Entry* took) {
  const plan::Graph& graph = *report.operators.graph;
  Json json = {{"step", entry.name}};
  if (entry.repeated) json["times"] = entry.times;
  if (!entry.nodes.empty()) {
    Json operators = Json::array();
    for (const plan::NodeId id : entry.nodes) operators.push_back(shown_name(graph.view(id)));
    json["operators"] = std::move(operators);
    json["result"] = print(graph.type(graph.result(entry.nodes.back())), graph.symbols());
  }
  json["multiply_adds"] = whole(entry.work.multiply_adds);
  json["flops"] = whole(entry.work.flops);
  json["bytes_read"] = whole(entry.work.bytes_read);
  json["bytes_written"] = whole(entry.work.bytes_written);
  if (entry.kept > 0) json["bytes_kept"] = whole(entry.kept);
  json["seconds_at_best"] = entry.seconds;
  json["bound_by"] = cost::name(entry.limit());
  if (!report.operators.predicted.empty()) json["seconds_predicted"] = entry.measured;
  if (took != nullptr) json["seconds_measured"] = took->measured;
  for (std::size_t i = 0; i < entry.children.size(); ++i) {
    const bool paired = took != nullptr && i < took->children.size();
    json["steps"].push_back(to_json(report, entry.children[i], paired ? &took->children[i] : nullptr));
  }
  return json;
}

Json phases_json(const Report& report, double& seconds_at_best) {
  const plan::Graph& graph = *report.operators.graph;
  std::vector<double> kept(report.operators.kept.empty() ? 0 : graph.node_count());
  for (const plan::ValueId value : report.operators.kept)
    kept[graph.value(value).producer.value] += static_cast<double>(graph.type(value).bytes());
  Json phases = Json::array();
  for (const plan::Phase phase : report.operators.phases) {
    const auto outlined = [&](std::span<const double> seconds) {
      return outline(graph, phase, report.cluster.device, seconds, kept);
    };
    const Entry entry = outlined(report.operators.predicted);
    seconds_at_best += entry.seconds;
    if (report.measured && !report.measured->times.node_seconds.empty()) {
      const Entry took = outlined(report.measured->times.node_seconds);
      phases.push_back(to_json(report, entry, &took));
    } else {
      phases.push_back(to_json(report, entry, nullptr));
    }
  }
  return phases;
}

void add_one_device(const Report& report, Json& json) {
  const OneDevice& alone = *report.alone;
  const plan::Graph& graph = *report.operators.graph;
  json["devices_planned"] = 1;
  json["parameters"] = count_parameters(graph);
  json["nodes"] = graph.node_count();
  json["plan_hash"] = plan::structural_hash(graph).hex();
  if (alone.predicted_seconds > 0)
    json["seconds_predicted"] = alone.predicted_seconds + report.spilled_seconds;
  if (alone.rewriting)
    json["rules"] = {{"seconds_before", alone.rewriting->seconds_before},
                     {"seconds_after", alone.rewriting->seconds_after},
                     {"stopped", search::name(alone.rewriting->stopped)},
                     {"trail", trail_json(report.rules)}};
}

void add_ranks(const Report& report, Json& json) {
  const search::DistributionChoice& choice = *report.choice;
  json.update(step_json(choice.chosen.evaluation()));
  json.update(reasons_json(choice.chosen.prediction));
  json["search"] = {
      {"estimates", choice.outcome.estimates},    {"meshes", choice.outcome.meshes},
      {"failed", choice.outcome.failed},          {"layers", choice.layers},
      {"layers_folded_to", choice.folded},        {"stopped", search::name(choice.outcome.ended)},
      {"ruled_out", choice.outcome.ruled_out},    {"parts", choice.outcome.parts},
      {"from_plan_cache", choice.from_plan_cache}};
  json["search_seconds"] = choice.search_seconds;
  if (!report.rules.empty()) json["rules"] = trail_json(report.rules);
  if (!report.communication_rules.empty())
    json["communication_rules"] = trail_json(report.communication_rules);
  if (!report.verbose && !report.sections.contains("TRAIL")) return;
  json["trail"] = Json::array();
  for (const search::Improvement& step : choice.outcome.trail)
    json["trail"].push_back({{"plan", step.to},
                             {"step_seconds", step.after.seconds},
                             {"memory_per_rank_bytes", step.after.bytes}});
}

// A plan with stages and micro-batches, chosen or not.
Json in_time_json(const search::PipelinePlan& plan) {
  const search::PipelineEstimate& priced = plan.priced;
  return {{"micro_batches", priced.schedule.micro_batches},
          {"schedule", priced.schedule.name},
          {"chunks", priced.schedule.chunks},
          {"bubble_rate", priced.bubble_rate()},
          {"bubble",
           {{"filling_seconds", priced.filling},
            {"transfer_seconds", priced.transferring},
            {"unequal_seconds", priced.unequal}}},
          {"update_seconds", priced.updating},
          {"recompute", train::print(plan.distribution.recompute)},
          {"host_bytes", whole(priced.stages[priced.fullest].on_host)}};
}

Json stage_json(const Report& report, std::size_t index) {
  const search::ChosenPipeline& choice = *report.pipeline->choice;
  const search::StageCost& stage = choice.priced.stages[index];
  Json runs = Json::array();
  for (const search::StageCost::Run& run : stage.runs)
    runs.push_back({{"first", choice.parts[run.first]},
                    {"last", choice.parts[run.first + run.count - 1]},
                    {"parts", run.count}});
  Json json = {{"runs", std::move(runs)},
               {"forward_seconds", stage.forward},
               {"backward_seconds", stage.backward},
               {"weight_seconds", stage.weight},
               {"transfer_seconds", stage.transfer},
               {"repeated_seconds", stage.repeated},
               {"update_seconds", stage.update},
               {"idle_seconds", stage.idle},
               {"in_flight", stage.in_flight},
               {"memory_bytes", whole(stage.memory.total())},
               {"needed_bytes", whole(stage.needed_bytes)}};
  for (const auto& [what, bytes] : stage.memory.kinds()) json["memory"][std::string(what)] = whole(bytes);
  if (!stage.device.empty()) json["device"] = stage.device;
  if (distribute::has_stage_meshes(choice.distribution))
    json["mesh"] = distribute::print_stage_mesh(choice.distribution, static_cast<std::int32_t>(index));
  if (!report.measured) return json;
  const Measured::Stage& took = report.measured->stages[index];
  json["measured"] = {{"forward_seconds", took.forward},
                      {"backward_seconds", took.backward},
                      {"weight_seconds", took.weight},
                      {"update_seconds", took.update},
                      {"idle_seconds", took.idle}};
  return json;
}

void add_pipeline(const Report& report, Json& json) {
  const Pipeline& pipeline = *report.pipeline;
  const search::ChosenPipeline& choice = *pipeline.choice;
  json.update(in_time_json(choice));
  json["rows_per_micro_batch"] = pipeline.rows / choice.distribution.micro_batches;
  json["rows_a_micro_batch"] = json["rows_per_micro_batch"];
  for (const search::Replica& replica : choice.replicas) {
    json["replicas"].push_back({{"micro_batches", replica.takes},
                                {"takes", replica.takes},  // former name of the key
                                {"step_seconds", replica.seconds}});
    if (!replica.device.empty()) json["replicas"].back()["device"] = replica.device;
  }
  json["pipeline_stages"] = Json::array();
  for (std::size_t s = 0; s < choice.priced.stages.size(); ++s)
    json["pipeline_stages"].push_back(stage_json(report, s));
  json["search"] = {{"candidates", choice.candidates},
                    {"simulated", choice.simulated},
                    {"schedules_priced", choice.priced_events},
                    {"least_seconds", choice.least_seconds},
                    {"layers", choice.layers},
                    {"layers_folded_to", choice.folded},
                    {"ended_early", choice.ended_early}};
  json["search_seconds"] = choice.search_seconds;
  json["batch_norms_by_micro_batch"] =
      choice.distribution.micro_batches > 1 ? pipeline.batch_norms : std::int64_t{0};
}

void add_alternatives(const Report& report, Json& json) {
  json["alternatives"] = Json::array();
  for (const Candidate& other : alternatives_of(report)) {
    Json row = {{"name", other.name},
                {"parallelism", terms_of(report, *other.distribution)},
                {"plan", print(*other.distribution)},
                {"step_seconds", other.seconds},
                {"mfu", report.utilization(other.seconds)},
                {"memory_per_rank_bytes", whole(other.bytes)},
                {"fits", other.fits}};
    if (other.evaluation != nullptr) row.update(step_json(*other.evaluation));
    if (other.in_time != nullptr) row.update(in_time_json(*other.in_time));
    if (!other.why_not.empty()) row["why_not"] = other.why_not;
    json["alternatives"].push_back(std::move(row));
  }
}

Json to_json(const FirstAnswer& answer) {
  return {{"seconds", answer.seconds},         {"seconds_one_after_the_other", answer.one_after_the_other},
          {"seconds_copying", answer.copying}, {"seconds_computing", answer.computing},
          {"groups", answer.groups},           {"bytes", whole(answer.bytes)}};
}

Json to_json(const Latency& latency) { return {{"median", latency.median}, {"p99", latency.p99}}; }
Json to_json(const PriorityLatency& urgency) {
  return {{"seconds_alone", to_json(urgency.alone)},
          {"seconds_in_turn", to_json(urgency.in_turn)},
          {"seconds_going_first", to_json(urgency.at_high_priority)},
          {"seconds_given_way", to_json(urgency.beside_low_priority)},
          {"step_seconds", urgency.step},
          {"step_seconds_giving_way", urgency.step_at_low_priority}};
}

// Times of nodes and phases are summed over workers; the step time is wall time.
Json measured_json(const Report& report) {
  const Measured& measured = *report.measured;
  const program::Attribution& times = measured.times;
  Json json = {{"step_seconds", times.step_seconds},
               {"seconds_a_step", times.step_seconds},
               {"steps", times.steps},
               {"ranks", measured.ranks},
               {"threads", times.workers},
               {"memory_per_rank_bytes", whole(measured.memory_bytes)},
               {"memory_bytes", whole(measured.memory_bytes)}};
  if (!times.node_seconds.empty())
    json.update({{"seconds_busy", times.busy_seconds},
                 {"busy", times.busy()},
                 {"seconds_other", other_seconds(*report.operators.graph, times)}});
  if (measured.memory_lower_bound > 0) json["memory_lower_bound"] = whole(measured.memory_lower_bound);
  if (measured.exposed_communication_seconds) {
    json["exposed_communication_seconds"] = *measured.exposed_communication_seconds;
    json["median_error_before"] = measured.error_before;
  }
  if (measured.predicted_after > 0)  // otherwise nothing was saved
    json.update({{"median_error_after", measured.error_after},
                 {"step_seconds_predicted_after", measured.predicted_after}});
  if (!measured.stages.empty()) {
    json["bubble_seconds"] = measured.bubble;
    json["bubble_rate"] = times.step_seconds > 0 ? measured.bubble / times.step_seconds : 0;
  }
  if (measured.urgency) json["urgency"] = to_json(*measured.urgency);
  if (measured.first_answer) json["first_answer"] = to_json(*measured.first_answer);
  return json;
}

}  // namespace

std::string print_json(const Report& report) {
  Json json;
  add_head(report, json);
  const StepFacts facts = step_of(report);
  if (report.choice != nullptr && !report.pipeline) add_ranks(report, json);
  if (report.pipeline) add_pipeline(report, json);
  if (report.alone) add_one_device(report, json);
  for (const ReportLine& line : report_lines()) line.json(report, facts, json);
  json["planning_seconds"] = report.planning_seconds;
  json["stages"] = stages_json(report.stages);
  if (report.distribution() != nullptr) add_alternatives(report, json);
  if (report.measured) json["measured"] = measured_json(report);
  if (report.operators.graph != nullptr) {
    double at_best = 0;
    json["phases"] = phases_json(report, at_best);
    json["seconds_at_best"] = at_best;
  }
  if (report.with_text) json["report"] = print_text(report);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
