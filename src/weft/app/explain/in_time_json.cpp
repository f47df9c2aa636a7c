#include <nlohmann/json.hpp>

#include "weft/app/explain/codecs.h"
#include "weft/app/explain/head_json.h"
#include "weft/app/explain/in_time.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/whole.h"
#include "weft/parallel/distribute/stage_meshes.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

Json plan_json(const DistributedExplanation& about, const search::PlanInTime& plan) {
  const search::PricedInTime& priced = plan.priced;
  Json memory = Json::object();
  for (const auto& [what, bytes] : priced.stages[priced.fullest].memory.kinds())
    memory[std::string(what)] = whole(bytes);
  return {{"plan", print(plan.distribution)},
          {"step_seconds", priced.seconds},
          {"mfu", about.utilization(priced.seconds)},
          {"memory_per_rank_bytes", whole(priced.peak_bytes)},
          {"memory", std::move(memory)},
          {"micro_batches", priced.schedule.micro_batches},
          {"schedule", priced.schedule.name},
          {"chunks", priced.schedule.chunks},
          {"bubble_rate", priced.bubble_rate()},
          {"bubble",
           {{"filling_seconds", priced.filling},
            {"transfer_seconds", priced.transferring},
            {"unequal_seconds", priced.unequal}}},
          {"update_seconds", priced.updating},
          {"recompute", train::print(plan.distribution.recompute)},
          {"host_bytes", whole(priced.stages[priced.fullest].on_host)},
          {"fits", plan.fits}};
}

Json stages_json(const search::ChosenInTime& choice, const std::optional<MeasuredInTime>& measured) {
  Json stages = Json::array();
  for (const search::StageCost& stage : choice.priced.stages) {
    Json runs = Json::array();
    for (const search::StageCost::Run& run : stage.runs)
      runs.push_back({{"first", choice.parts[run.first]},
                      {"last", choice.parts[run.first + run.count - 1]},
                      {"parts", run.count}});
    stages.push_back({{"runs", std::move(runs)},
                      {"forward_seconds", stage.forward},
                      {"backward_seconds", stage.backward},
                      {"weight_seconds", stage.weight},
                      {"transfer_seconds", stage.transfer},
                      {"repeated_seconds", stage.repeated},
                      {"update_seconds", stage.update},
                      {"idle_seconds", stage.idle},
                      {"in_flight", stage.in_flight},
                      {"memory_bytes", whole(stage.memory.total())}});
    if (!stage.device.empty()) stages.back()["device"] = stage.device;
    if (distribute::has_stage_meshes(choice.distribution))
      stages.back()["mesh"] =
          distribute::print_stage_mesh(choice.distribution, static_cast<std::int32_t>(stages.size()) - 1);
    if (!measured) continue;
    const MeasuredInTime::Stage& took = measured->stages[stages.size() - 1];
    stages.back()["measured"] = {{"forward_seconds", took.forward},
                                 {"backward_seconds", took.backward},
                                 {"weight_seconds", took.weight},
                                 {"update_seconds", took.update},
                                 {"idle_seconds", took.idle}};
  }
  return stages;
}

}  // namespace

std::string print_json(const InTimeExplanation& explanation) {
  const DistributedExplanation& about = explanation.about;
  const search::ChosenInTime& choice = *explanation.choice;
  Json json = head_json(about);
  json["devices"] = about.cluster.devices();
  json.update(plan_json(about, choice));
  json["parallelism"] = about.parallelism;
  json["rows_a_micro_batch"] = explanation.rows / choice.distribution.micro_batches;
  for (const search::Replica& replica : choice.replicas) {
    json["replicas"].push_back({{"takes", replica.takes}, {"step_seconds", replica.seconds}});
    if (!replica.device.empty()) json["replicas"].back()["device"] = replica.device;
  }
  json["pipeline_stages"] = stages_json(choice, explanation.measured);
  if (const auto& measured = explanation.measured)
    json["measured"] = {{"step_seconds", measured->seconds},
                        {"steps", measured->steps},
                        {"ranks", measured->ranks},
                        {"bubble_seconds", measured->bubble},
                        {"bubble_rate", measured->bubble_rate()},
                        {"memory_per_rank_bytes", whole(measured->memory_bytes)}};
  json["lower_bound_seconds"] = explanation.lower_bound_seconds;
  json["lower_bound_by"] = explanation.lower_bound_why;
  json["planning_seconds"] = about.planning_seconds;
  json["search_seconds"] = choice.search_seconds;
  json["search"] = {{"candidates", choice.candidates},
                    {"simulated", choice.simulated},
                    {"schedules_priced", choice.priced_events},
                    {"least_seconds", choice.least_seconds},
                    {"layers", choice.layers},
                    {"layers_folded_to", choice.folded},
                    {"ended_early", choice.ended_early}};
  if (!about.slices.empty()) json["slices"] = about.slices;
  if (!about.coded.empty()) json["codecs"] = codecs_json(about.coded);
  json["proven"] = about.proven;
  json["proof"] = about.proof;
  json["batch_norms_by_micro_batch"] =
      choice.distribution.micro_batches > 1 ? explanation.batch_norms : std::int64_t{0};
  Json alternatives = Json::array();
  if (choice.megatron) {
    Json row = {{"name", "Megatron 3D"}};
    row.update(plan_json(about, *choice.megatron));
    alternatives.push_back(std::move(row));
  }
  for (const search::Alternative& other : explanation.without_stages) {
    Json row = {{"name", other.name}, {"plan", print(other.distribution)}};
    row.update(step_json(other.evaluation, about.utilization(other.evaluation.seconds)));
    row["fits"] = other.fits;
    row["why_not"] = other.why_not;
    alternatives.push_back(std::move(row));
  }
  json["alternatives"] = std::move(alternatives);
  json["hints"] = about.hints;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
