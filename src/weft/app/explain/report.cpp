#include "weft/app/explain/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/app/explain/predicted_step.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/parallelism.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/unit_seconds.h"

namespace weft::explain {
namespace {

using plan::NodeId;

std::vector<MemoryItem> items_of(const sim::MemoryByKind& memory) {
  std::vector<MemoryItem> items;
  for (const auto& [what, bytes] : memory.kinds()) items.push_back({std::string(what), bytes});
  return items;
}

StepFacts facts_of(const Report& report, const OneDevice& alone) {
  StepFacts facts;
  facts.memory = alone.memory;
  for (const MemoryItem& item : alone.memory) facts.memory_bytes += item.bytes;
  facts.memory_bytes -= report.spilled_bytes;
  double by_limit[4] = {}, roofline = 0;
  for (const plan::Phase phase : report.operators.phases) {
    const Entry entry =
        outline(*report.operators.graph, phase, report.cluster.device, {}, std::span<const double>());
    for (std::size_t i = 0; i < 4; ++i) by_limit[i] += entry.seconds_by_limit[i];
    roofline += entry.seconds;
  }
  facts.at_best = alone.predicted_seconds <= 0;
  facts.seconds = (facts.at_best ? roofline : alone.predicted_seconds) + report.spilled_seconds;
  if (!(roofline > 0)) return facts;
  std::size_t most = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (by_limit[i] > by_limit[most]) most = i;
    // Units fuse nodes, so the time is split in proportion to the nodes' roofline times.
    if (by_limit[i] > 0)
      facts.shares.push_back({fmt::format("{}-bound", cost::name(static_cast<cost::Limit>(i))),
                              by_limit[i] / roofline * facts.seconds});
  }
  facts.limit = fmt::format("{}: {} of the step", cost::name(static_cast<cost::Limit>(most)),
                            rounded_percent(by_limit[most] / roofline));
  return facts;
}

StepFacts facts_of(const Report& report, const sim::Prediction& prediction) {
  StepFacts facts;
  facts.seconds = prediction.seconds + report.spilled_seconds;
  const double exposed = prediction.exposed_communication_seconds;
  const double computing = std::min(prediction.compute_seconds, prediction.seconds - exposed);
  facts.shares = {{"compute", computing},
                  {"exposed communication", exposed},
                  {"idle", prediction.seconds - computing - exposed},
                  {"spilling", report.spilled_seconds}};
  facts.memory = items_of(prediction.memory);
  facts.memory_bytes = prediction.peak_bytes;
  facts.limit = prediction.bound;
  return facts;
}

StepFacts facts_of(const search::PipelineEstimate& priced) {
  StepFacts facts;
  facts.seconds = priced.seconds;
  const auto passes = [](const search::StageCost& stage) {
    return stage.forward + stage.backward + stage.weight;
  };
  const auto busiest = std::ranges::max_element(priced.stages, {}, passes);
  const double busy = priced.seconds - priced.bubble() - priced.updating;
  const double computing =
      passes(*busiest) > 0 ? busy * std::min(1.0, busiest->computing / passes(*busiest)) : busy;
  facts.shares = {{"compute", computing},
                  {"exposed communication", busy - computing},
                  {"bubble", priced.bubble()},
                  {"gradient sums and update", priced.updating}};
  facts.memory = items_of(priced.stages[priced.fullest].memory);
  facts.memory_bytes = priced.peak_bytes;
  facts.fits = priced.fits;
  if (priced.stages.size() > 1) facts.fullest = fmt::format("stage {}", priced.fullest);
  facts.limit =
      priced.stages.size() > 1
          ? fmt::format("stage {}, the busiest: {} of the step", busiest - priced.stages.begin(),
                        rounded_percent(busy / priced.seconds))
          : fmt::format("the micro-batches: {} of the step", rounded_percent(busy / priced.seconds));
  return facts;
}

Candidate candidate_of(const search::Alternative& other) {
  const search::Evaluation& found = other.evaluation;
  return {.name = other.name,
          .distribution = &other.distribution,
          .seconds = found.seconds,
          .bytes = found.peak_bytes,
          .computing = found.compute_seconds,
          .exposed = found.exposed_communication_seconds,
          .fits = other.fits,
          .why_not = other.why_not,
          .evaluation = &found};
}

Candidate candidate_of(std::string name, const search::PipelinePlan& plan) {
  return {.name = std::move(name),
          .distribution = &plan.distribution,
          .seconds = plan.priced.seconds,
          .bytes = plan.priced.peak_bytes,
          .bubble = plan.priced.bubble(),
          .fits = plan.fits,
          .in_time = &plan};
}

}  // namespace

bool Report::is_local() const { return cost::is_local(cluster); }

std::string_view Report::per() const {
  if (is_local()) return "rank";
  // TPU data sheets do not state an f32 rate.
  const bool gpu = cost::has_matrix_unit(cluster.device) && cluster.device.rate(cluster::Precision::f32) > 0;
  return gpu ? "GPU" : "device";
}

const distribute::Distribution* Report::distribution() const {
  if (pipeline) return &pipeline->choice->distribution;
  return choice != nullptr ? &choice->distribution : nullptr;
}

double Report::utilization(double seconds) const {
  return fraction_of_peak(model_flops, seconds, cluster, precision, devices_per_rank);
}

StepFacts step_of(const Report& report) {
  StepFacts facts = report.step                    ? *report.step
                    : report.pipeline              ? facts_of(report.pipeline->choice->priced)
                    : report.alone                 ? facts_of(report, *report.alone)
                    : report.prediction != nullptr ? facts_of(report, *report.prediction)
                                                   : StepFacts();
  if (report.memory_limit > 0 && facts.memory_bytes > report.memory_limit) facts.fits = false;
  return facts;
}

std::vector<Candidate> alternatives_of(const Report& report) {
  std::vector<Candidate> found;
  if (report.pipeline) {
    if (const auto& megatron = report.pipeline->choice->megatron)
      found.push_back(candidate_of("Megatron 3D", *megatron));
    for (const search::Alternative& other : report.pipeline->without_stages)
      found.push_back(candidate_of(other));
  } else if (report.choice != nullptr) {
    for (const search::Alternative& other : report.choice->alternatives) found.push_back(candidate_of(other));
  }
  return found;
}

std::string terms_of(const Report& report, const distribute::Distribution& distribution) {
  return distribute::print_parallelism(distribution, report.roles, report.rows);
}

std::int64_t count_parameters(const plan::Graph& graph) {
  std::int64_t count = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(NodeId(n)).op == &ops::parameter())
      count += graph.type(graph.result(NodeId(n))).elements();
  return count;
}

double other_seconds(const plan::Graph& graph, const program::Attribution& times) {
  double seconds = times.other_seconds;
  for (std::size_t n = 0; n < times.node_seconds.size(); ++n)
    if (!takes_time(graph.node(NodeId(n)))) seconds += times.node_seconds[n];
  return seconds;
}

}  // namespace weft::explain
