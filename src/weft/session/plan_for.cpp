#include "weft/session/plan_for.h"

#include <unistd.h>

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/cost/mesh_links.h"
#include "weft/cost/roofline.h"
#include "weft/cost/statistics.h"
#include "weft/cost/step_costs.h"
#include "weft/cost/unit_seconds.h"
#include "weft/price/asked_algorithms.h"
#include "weft/search/distribution/known_plans.h"
#include "weft/session/learn.h"

namespace weft::session {
int workers_of(const Settings& settings, const cluster::Cluster& cluster) {
  if (!cost::is_local(cluster)) return 1;
  const std::int64_t threads =
      settings.running.threads > 0 ? settings.running.threads : available_processors();
  return static_cast<int>(std::max<std::int64_t>(threads / cluster.devices(), 1));
}

namespace {

// Of everything that was measured here; what cannot be read counts as nothing measured.
Digest digest_of(const cost::Statistics* statistics) {
  Hasher hasher;
  if (statistics == nullptr) return hasher.digest();
  hasher.text(statistics->machine());
  if (const auto rows = statistics->collective_times(); rows.ok())
    for (const cost::CollectiveTime& row : *rows)
      hasher.number(static_cast<std::uint64_t>(row.kind))
          .number(static_cast<std::uint64_t>(row.ranks))
          .number(static_cast<std::uint64_t>(row.hosts))
          .text(row.transport)
          .number(row.allocated ? 1 : 0)
          .text(row.algorithm)
          .number(static_cast<std::uint64_t>(row.bytes))
          .real(row.seconds);
  if (const auto rows = statistics->links(); rows.ok())
    for (const cost::LinkTime& row : *rows)
      hasher.text(row.transport)
          .number(static_cast<std::uint64_t>(row.ranks))
          .number(static_cast<std::uint64_t>(row.from))
          .number(static_cast<std::uint64_t>(row.to))
          .number(row.together ? 1 : 0)
          .real(row.latency_seconds)
          .real(row.bytes_per_second);
  if (const auto rows = statistics->operator_times(); rows.ok())
    for (const cost::OperatorTime& row : *rows) hasher.text(row.unit).real(row.seconds);
  if (const auto rows = statistics->rates(); rows.ok())
    for (const cost::Rate& row : *rows)
      hasher.text(row.what)
          .number(static_cast<std::uint64_t>(row.threads))
          .number(static_cast<std::uint64_t>(row.bytes))
          .real(row.per_second);
  return hasher.digest();
}

}  // namespace

price::CostsOn costs_of(const cluster::Cluster& cluster, const Settings& settings, int workers) {
  auto asked = price::read_asked_algorithms(settings.running.algorithm);
  WEFT_CHECK(asked.ok(), "SET refuses algorithms that do not exist");
  return price::costs_on(cluster, settings.running.transport, workers, std::move(*asked));
}

search::Machine machine_of(const Settings& settings, const cluster::Cluster& cluster) {
  const int workers = workers_of(settings, cluster);
  // Without a database figures alone must do.
  std::shared_ptr<const cost::Statistics> statistics;
  if (cost::is_local(cluster))
    if (auto opened = cost::Statistics::open({}, cost::Access::read); opened.ok())
      statistics = std::make_shared<const cost::Statistics>(std::move(*opened));
  search::Machine machine;
  machine.workers = workers;
  machine.overlap = !cost::is_local(cluster) || overlaps(settings, cluster.devices(), workers);
  machine.costs = [on = costs_of(cluster, settings, workers), statistics](const plan::Mesh& mesh) {
    return on(mesh, statistics.get());
  };
  machine.prices = [&cluster](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisPrice>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<distribute::AxisPrice> prices;
    for (const cost::MeshLink& link : links)
      prices.push_back({link.latency_seconds, link.bytes_per_second > 0 ? link.bytes_per_second : 1e9});
    return prices;
  };
  // What was measured here may beat the figures, so these rule nothing out.
  if (!cost::is_local(cluster)) {
    machine.peak = [&device = cluster.device](plan::DType dtype) {
      return cost::best_efficiency(device) * cost::peak_rate(device, dtype);
    };
    machine.launch_seconds = cluster.device.launch_seconds;
  }
  machine.digest = Hasher()
                       .digest_of(search::digest_of(cluster))
                       .digest_of(digest_of(statistics.get()))
                       .text(settings.running.transport)
                       .text(settings.running.algorithm)
                       .number(static_cast<std::uint64_t>(workers))
                       .number(machine.overlap ? 1 : 0)
                       .digest();
  return machine;
}

double memory_of_a_rank(const Settings& settings, const cluster::Cluster& cluster) {
  if (settings.memory_limit > 0) return settings.memory_limit;
  if (!cost::is_local(cluster)) return cluster.device.memory_bytes;
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return machine > 0 ? machine / static_cast<double>(cluster.devices()) : 0;
}

namespace {

// `distribution`: as a user or another rank has it; empty: to be searched for.
Result<search::DistributionChoice> spread(const Session::State& state, const Prepared& prepared,
                                          const std::string& distribution, bool compare) {
  const search::Machine machine = machine_of(prepared.settings, prepared.target);
  search::ChooseOptions options;
  options.memory_bytes = memory_of_a_rank(prepared.settings, prepared.target);
  options.fixed = prepared.fixed;
  options.budget.estimates = prepared.settings.search_limit;
  options.alternatives = compare;
  options.devices_a_rank = machine.workers;
  options.known = state.known_plans.get();
  if (!distribution.empty()) {
    WEFT_TRY(given, distribute::read_distribution(distribution));
    options.given = std::move(given);
  }
  return search::choose_distribution(prepared.plan.graph, prepared.target, machine, options);
}

}  // namespace

Result<search::DistributionChoice> plan_for(const Session::State& state, const Prepared& prepared,
                                            bool compare) {
  return spread(state, prepared, prepared.settings.distribution, compare);
}

Result<search::DistributionChoice> plan_for_ranks(const Session::State& state, const Prepared& prepared,
                                                  bool compare) {
  // All search, so that none waits for another longer than it would by itself; a rank that failed speaks too.
  Result<search::DistributionChoice> found = plan_for(state, prepared, compare);
  const std::string mine = found.ok() ? distribute::print(found->distribution) : std::string();
  WEFT_TRY(first, run::from_first_rank(mine));
  if (!found.ok() || first == mine) return found;
  if (first.empty()) return world_error("rank 0 found no plan", "its own error says why");
  return spread(state, prepared, first, compare);
}

}  // namespace weft::session
