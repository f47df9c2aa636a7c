#include "weft/app/session/explain_one_device.h"

#include <fmt/format.h>

#include "weft/app/session/step_page.h"
#include "weft/app/session/trace.h"
#include "weft/formats/chakra_program.h"
#include "weft/formats/inductor_trace.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/target/machine.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/predict/sim/step/memory_curve.h"

namespace weft::session {
namespace {

// Simulates the plan as the only choice on a mesh of one rank.
Result<search::DistributionChoice> simulate_alone(const Prepared& prepared, const plan::Graph& graph) {
  search::DistributionChoice choice;
  choice.fits = true;
  choice.distribution.mesh = {{{"rank", 1}}};
  choice.distribution.axes.resize(1);
  distribute::DistributedPlan& plan = choice.chosen.plan;
  plan.graph = graph.clone();
  plan.mesh = choice.distribution.mesh;
  WEFT_TRY(layouts, spmd::infer_layouts(plan.graph, plan.mesh));
  plan.layouts = std::move(layouts);
  const cluster::Cluster one = alone(prepared.target);
  const search::Machine machine = machine_of(prepared.settings, one);
  WEFT_TRY(costs, machine.costs(plan.mesh));
  if (!cost::is_local(one) && cost::has_matrix_unit(one.device)) {
    costs.compile.accelerated = true;  // compile the same units as the explanation
    costs.compile.tiles = false;
  }
  WEFT_TRY(prediction, sim::predict(plan.graph, plan.mesh, plan.layouts, costs,
                                    {.overlap = machine.overlap, .workers = machine.workers}));
  choice.chosen.prediction = std::move(prediction);
  return choice;
}

}  // namespace

Status write_one_device_files(const Prepared& prepared, const explain::Report& report,
                              const search::Choice& choice, const std::optional<MeasuredOneDevice>& measured,
                              const ExplainOptions& options) {
  if (options.page.empty() && options.timeline.empty() && options.chakra.empty() && options.inductor.empty())
    return {};
  WEFT_TRY(simulated, simulate_alone(prepared, choice.plan));
  const sim::Prediction& prediction = simulated.chosen.prediction;
  if (!options.page.empty()) {
    explain::Report drawn = report;
    drawn.prediction = &prediction;
    explain::StepPage page = step_page(drawn);
    if (measured)
      page.timelines.push_back({.ranks = {0},
                                .measured = true,
                                .program = measured->program,
                                .timeline = measured->timeline,
                                .memory = sim::memory_curve(*measured->program, measured->timeline.tasks)});
    WEFT_TRY_STATUS(write_step_page(options.page, page));
  }
  if (!options.chakra.empty())
    WEFT_TRY_STATUS(formats::write_chakra(prediction, simulated.chosen.plan.mesh, options.chakra));
  if (!options.inductor.empty())
    WEFT_TRY_STATUS(formats::write_inductor_trace(prediction, simulated.chosen.plan.mesh, options.inductor));
  if (options.timeline.empty()) return {};
  formats::Trace trace = trace_of(prediction);
  if (measured)
    add_rank(trace, *measured->program, measured->timeline,
             static_cast<std::int32_t>(prediction.classes.size()), "measured");
  return write_trace(options.timeline, trace);
}

}  // namespace weft::session
