#include "weft/session/plan_for.h"

#include <unistd.h>

#include <algorithm>

#include "weft/base/machine.h"
#include "weft/cost/mesh_links.h"
#include "weft/cost/statistics.h"
#include "weft/cost/step_costs.h"
#include "weft/session/learn.h"

namespace weft::session {
namespace {

search::FixedPart fixed_by(std::span<const KeptHint> hints) {
  search::FixedPart fixed;
  for (const KeptHint& hint : hints) {
    if (hint.kind == language::syntax::HintKind::replicate)
      fixed.exceptions.push_back({hint.subject, hint.axis, {}});
    else if (hint.tensor.empty())
      fixed.slices.push_back({hint.subject, hint.axis});
    else
      fixed.exceptions.push_back({hint.tensor, hint.axis, hint.subject});
  }
  return fixed;
}

}  // namespace

int workers_of(const Settings& settings, const cluster::Cluster& cluster) {
  if (!cost::is_local(cluster)) return 1;
  const std::int64_t threads =
      settings.running.threads > 0 ? settings.running.threads : available_processors();
  return static_cast<int>(std::max<std::int64_t>(threads / cluster.devices(), 1));
}

namespace {

search::Machine machine_of(const cluster::Cluster& cluster, int workers, bool overlap,
                           std::shared_ptr<const cost::Statistics> statistics) {
  search::Machine machine;
  machine.overlap = overlap;
  machine.costs = [&cluster, statistics, workers](const plan::Mesh& mesh) -> Result<cost::StepCosts> {
    WEFT_TRY(costs, cost::step_costs(cluster, mesh, {.statistics = statistics.get()}));
    // The workers of a rank share its tasks: at best each does an equal part.
    if (workers > 1)
      costs.compute = [alone = std::move(costs.compute), workers](const program::Program& program,
                                                                  const program::Task& task) {
        cost::TaskPrice price = alone(program, task);
        price.seconds /= workers;
        return price;
      };
    return costs;
  };
  machine.prices = [&cluster](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisPrice>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<distribute::AxisPrice> prices;
    for (const cost::MeshLink& link : links)
      prices.push_back({link.latency_seconds, link.bytes_per_second > 0 ? link.bytes_per_second : 1e9});
    return prices;
  };
  return machine;
}

}  // namespace

double memory_of_a_rank(const Settings& settings, const cluster::Cluster& cluster) {
  if (settings.memory_limit > 0) return settings.memory_limit;
  if (!cost::is_local(cluster)) return cluster.device.memory_bytes;
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return machine > 0 ? machine / static_cast<double>(cluster.devices()) : 0;
}

Result<search::DistributionChoice> plan_for(const Session::State& state, const Settings& settings,
                                            const plan::Graph& graph, const distribute::Phases& phases,
                                            const cluster::Cluster& cluster, bool compare) {
  // Without a database figures alone must do.
  std::shared_ptr<const cost::Statistics> statistics;
  if (cost::is_local(cluster))
    if (auto opened = cost::Statistics::open({}, cost::Access::read); opened.ok())
      statistics = std::make_shared<const cost::Statistics>(std::move(*opened));
  const int workers = workers_of(settings, cluster);
  search::ChooseOptions options;
  options.memory_bytes = memory_of_a_rank(settings, cluster);
  options.fixed = fixed_by(state.hints);
  options.budget.estimates = settings.search_limit;
  options.alternatives = compare;
  options.devices_a_rank = workers;
  if (!settings.distribution.empty()) {
    WEFT_TRY(given, distribute::read_distribution(settings.distribution));
    options.given = std::move(given);
  }
  return search::choose_distribution(
      graph, phases, cluster,
      machine_of(cluster, workers,
                 /*overlap=*/!cost::is_local(cluster) || overlaps(settings, cluster.devices(), workers),
                 statistics),
      options);
}

}  // namespace weft::session
