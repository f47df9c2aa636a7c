#include "support/local_training.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "support/training_rank.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/plan/ops/operators.h"

namespace weft::bench {
namespace {

distribute::DistributedPlan plan_of(const TrainedModel& model, std::int32_t ranks) {
  const train::TrainingPlan training = training_plan(model.model, model.sizes);
  const std::string text =
      model.distribution.empty() ? fmt::format("rank={}: slice b", ranks) : model.distribution;
  const auto how = or_throw(distribute::read_distribution(text));
  return or_throw(distribute::is_pipelined(how) ? pipeline::distribute_pipelined(training.graph, how)
                                                : distribute::distribute(training.graph, how));
}

// The first steps fault in memory and wake up processors.
std::int64_t warm_up(std::int64_t steps) { return std::clamp<std::int64_t>(steps / 5, 1, 50); }

}  // namespace

LocalTraining::LocalTraining(const TrainedModel& model, const run::LocalRanksOptions& options)
    : options_(options), plan_(plan_of(model, options.ranks)), feed_(run::made_up_feed(plan_.graph, 7)) {}

double LocalTraining::train(std::int64_t steps) const {
  const std::int64_t before = warm_up(steps);
  double begin = 0, end = 0;
  run::DistributedRun run;
  run.training.steps = before + steps;
  run.training.on_step = [&](const run::StepReport& report) -> Status {
    if (report.step == before) begin = report.seconds;
    end = report.seconds;
    return {};
  };
  or_throw(run::run_distributed(plan_, options_, *feed_, {}, run));
  return end - begin;
}

LocalTraining::Timelines LocalTraining::timelines(std::int64_t steps, bool overlap) const {
  run::LocalRanksOptions options = options_;
  options.overlap = overlap;
  run::DistributedRun run;
  run.measure_from = warm_up(steps);
  run.training.steps = *run.measure_from + steps;
  return or_throw(run::run_distributed(plan_, options, *feed_, {}, run)).timelines;
}

std::int64_t LocalTraining::parameter_elements() const {
  std::int64_t elements = 0;
  for (std::size_t n = 0; n < plan_.graph.node_count(); ++n)
    if (const plan::NodeView node = plan_.graph.view(plan::NodeId(n)); &node.op() == &ops::parameter())
      elements += node.result_type(0).elements();
  return elements;
}

}  // namespace weft::bench
