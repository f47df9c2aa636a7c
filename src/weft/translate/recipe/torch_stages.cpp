// The stages of a plan that is estimated but cannot be built.
#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/torch_csv.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/translate/recipe/known_families.h"
#include "weft/translate/recipe/torch_plan.h"

namespace weft::recipe {

Result<TorchPlan> torch_stages(const plan::Graph& model, const distribute::Distribution& distribution,
                               Precision precision) {
  TorchPlan made;
  made.model = model.name;
  made.distribution = print(distribution);
  made.precision = precision;
  made.micro_batches = distribution.micro_batches;
  const std::vector<std::int64_t> of_nodes = search::layers_of_nodes(model);
  made.layers = of_nodes.empty() ? 0 : std::ranges::max(of_nodes) + 1;
  WEFT_TRY(schedule, pipeline::schedule_of(distribution));
  WEFT_TRY(csv, pipeline::print_torch_csv(schedule, pipeline::TorchFormat::compute_only));
  auto layers = launcher_layers(made.layers, schedule.positions());
  if (!layers)
    return user_error(fmt::format("expected a repeated layer in each of {} stages, found {} layers",
                                  schedule.positions(), made.layers),
                      "use fewer stages");
  made.schedule = std::move(csv);
  made.route = schedule.route;
  made.stage_layers = *std::move(layers);
  if (made.stage_layers.empty())  // as many in each
    made.stage_layers.assign(static_cast<std::size_t>(schedule.positions()),
                             made.layers / schedule.positions());
  made.stages_lost.emplace_back("the plan's stage boundaries: layers are divided as equally as possible");
  return made;
}

}  // namespace weft::recipe
