// `weft plan price`: the time of a written plan on a cluster.
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/plan_with_layouts.h"
#include "weft/app/command/plans.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/plan/ops/communication.h"
#include "weft/planner/search/distribution/meshes.h"
#include "weft/planner/step/plan_for.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

Result<cluster::Cluster> cluster_for(const std::string& given, const plan::Mesh& mesh) {
  if (given.empty()) {
    auto local = session::local_cluster(mesh.ranks());
    if (local.ok() && cost::mesh_links(*local, mesh).ok()) return local;
    return user_error(fmt::format("the plan does not name its cluster; its mesh is {}", print(mesh)),
                      "--cluster pod, or a script that creates one: --cluster my.weft");
  }
  WEFT_TRY(cluster, session::find_cluster(given));
  if (auto links = cost::mesh_links(cluster, mesh); !links.ok())
    return user_error(fmt::format("the plan's mesh does not fit the cluster: the mesh is {}, {} is {}",
                                  print(mesh), cluster.name, print(search::meshes_of(cluster).front().mesh)),
                      links.error().hint);
  return cluster;
}

struct Arithmetic {
  double flops = 0;
  plan::DType precision = plan::DType::f32;  // the dtype of most flops
};

// Counts the model's flops, without communication.
Arithmetic arithmetic_of(const plan::Graph& graph) {
  Arithmetic all;
  std::map<plan::DType, double> by_precision;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (node.input_count() == 0 || ops::find_communication(node.op()) != nullptr) continue;
    const double flops = node.op().work(node).flops;
    all.flops += flops;
    by_precision[node.input_type(0).dtype] += flops;
  }
  double most = 0;
  for (const auto& [precision, flops] : by_precision)
    if (flops > most) most = flops, all.precision = precision;
  return all;
}

Result<std::string> priced(const PlanEstimate& request) {
  WEFT_TRY(plan, read_plan_with_layouts(request.file, request.mesh));
  if (plan.in_time)
    return user_error(
        fmt::format("{} has stages or micro-batches, which weft cannot estimate from a plan file",
                    request.file),
        "estimate its distribution instead: EXPLAIN TRAIN m ON c WITH (distribution = '..')");
  WEFT_TRY(cluster, cluster_for(request.cluster, plan.mesh));
  const planner::Settings settings;
  const search::Machine machine = planner::machine_of(settings, cluster);
  WEFT_TRY(costs, machine.costs(plan.mesh));
  const sim::PredictOptions how{.overlap = machine.overlap, .timeline = false, .workers = machine.workers};
  search::PredictedPlan predicted;
  WEFT_TRY(found, sim::predict(plan.graph, plan.mesh, plan.layouts, costs, how));
  predicted.prediction = std::move(found);
  const sim::Prediction& prediction = predicted.prediction;

  const Arithmetic work = arithmetic_of(plan.graph);
  const double of_peak =
      explain::fraction_of_peak(work.flops, prediction.seconds, cluster, work.precision, machine.workers);
  const double memory = planner::memory_per_rank(settings, cluster);
  const bool fits = !(memory > 0) || prediction.peak_bytes <= memory;
  if (request.format == session::Format::json) {
    Json json = {{"plan", request.file},
                 {"cluster", cluster.name},
                 {"device", cluster.device.name},
                 {"devices", cluster.devices()},
                 {"mesh", print(plan.mesh)}};
    json.update(explain::step_json(predicted.evaluation()));
    json["mfu"] = of_peak;
    json["fits"] = fits;
    json["proven"] = false;
    json.update(explain::reasons_json(prediction));
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  explain::Report report;
  report.terms = request.file;
  report.precision = work.precision;
  report.cluster = cluster;
  report.memory_limit = memory;
  report.memory_reserve = planner::memory_reserve(settings, cluster);
  report.device_memory = planner::device_memory(cluster);
  report.model_flops = work.flops;
  report.devices_per_rank = machine.workers;
  report.prediction = &prediction;
  report.proof = "not proven; run weft plan prove to check the plan";
  const std::string sent = explain::sent_by_axis(prediction.traffic);
  return fmt::format("{} on {}: {}\n\n{}\n{}\n{}sent per rank: {}\n", request.file, cluster.name,
                     print(plan.mesh), print_lines(report, /*after=*/false),
                     print(explain::collectives_section(prediction, /*every=*/false), report.width),
                     print_lines(report, /*after=*/true), sent.empty() ? "nothing" : sent);
}

}  // namespace

session::Reply run(const PlanEstimate& request) { return session::to_reply(priced(request)); }

}  // namespace weft::command
