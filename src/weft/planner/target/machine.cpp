#include "weft/planner/target/machine.h"

#include <algorithm>
#include <memory>

#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/plan/cluster/digest.h"
#include "weft/planner/exchange/requested_algorithms.h"
#include "weft/planner/target/find_target.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/uncertainty.h"
#include "weft/predict/cost/unit_seconds.h"

namespace weft::planner {

int threads_of(const Settings& settings) {
  constexpr std::int64_t kMost = 1024;
  return settings.running.threads == 0 ? available_processors()
                                       : static_cast<int>(std::min(settings.running.threads, kMost));
}

int workers_of(const Settings& settings, const cluster::Cluster& cluster) {
  if (!cost::is_local(cluster)) return 1;
  const std::int64_t threads =
      settings.running.threads > 0 ? settings.running.threads : available_processors();
  return static_cast<int>(std::max<std::int64_t>(threads / cost::ranks_of_a_host(cluster), 1));
}

namespace {

// Of all measurements of this machine. Tables that cannot be read count as empty.
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

// A communication thread without its own processor slows down a worker. Measured, that costs more
// than the overlap saves.
bool overlaps(const Settings& settings, std::int64_t ranks, int workers) {
  return settings.running.overlap.value_or(ranks * (workers + 1) <= available_processors());
}

exchange::CostsOn costs_of(const cluster::Cluster& cluster, const Settings& settings, int workers) {
  auto asked = exchange::read_requested_algorithms(settings.running.algorithm);
  WEFT_CHECK(asked.ok(), "SET rejects unknown algorithms");
  return exchange::costs_on(cluster, settings.running.transport, workers, std::move(*asked),
                            settings.running.synthesize, static_cast<std::int32_t>(settings.servers));
}

search::Machine machine_of(const Settings& settings, const cluster::Cluster& cluster) {
  const int workers = workers_of(settings, cluster);
  // Without a database, only datasheet figures are used.
  std::shared_ptr<const cost::Statistics> statistics;
  if (cost::is_local(cluster))
    if (auto opened = cost::Statistics::open({}, cost::Access::read); opened.ok())
      statistics = std::make_shared<const cost::Statistics>(std::move(*opened));
  search::Machine machine;
  machine.workers = workers;
  machine.overlap = !cost::is_local(cluster) || overlaps(settings, cost::ranks_of_a_host(cluster), workers);
  machine.costs = [on = costs_of(cluster, settings, workers), statistics](const plan::Mesh& mesh) {
    return on(mesh, statistics.get());
  };
  machine.prices = [&cluster](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<distribute::AxisCost> prices;
    for (const cost::MeshLink& link : links)
      prices.push_back({link.latency_seconds, link.bytes_per_second > 0 ? link.bytes_per_second : 1e9});
    return prices;
  };
  // Measurements may exceed these datasheet figures, so LOCAL ranks get no lower bounds.
  if (!cost::is_local(cluster)) {
    machine.peak = [&device = cluster.device](plan::DType dtype) {
      return cost::best_efficiency(device) * cost::peak_rate(device, dtype);
    };
    machine.launch_seconds = cluster.device.launch_seconds;
    machine.convolution_rate =
        cost::best_convolution_efficiency(cluster.device) / cost::best_efficiency(cluster.device);
    machine.bytes_per_second = cluster.device.reach * cluster.device.memory_bytes_per_second;
  }
  machine.digest = Hasher()
                       .digest_of(cluster::digest_of(cluster))
                       .digest_of(digest_of(statistics.get()))
                       .text(settings.running.transport)
                       .text(settings.running.algorithm)
                       .number(static_cast<std::uint64_t>(settings.servers))
                       .number(static_cast<std::uint64_t>(workers))
                       .number(machine.overlap ? 1 : 0)
                       .number(settings.running.synthesize ? 1 : 0)
                       .digest();
  return machine;
}

double device_memory(const cluster::Cluster& cluster) {
  if (!cost::is_local(cluster)) return cluster.device.memory_bytes;
  const auto machine = static_cast<double>(total_memory());
  return machine > 0 ? machine / static_cast<double>(cost::ranks_of_a_host(cluster)) : 0;
}

double memory_reserve(const Settings& settings, const cluster::Cluster& cluster) {
  if (settings.memory_limit > 0 || cost::is_local(cluster)) return 0;
  if (settings.memory_reserve) return *settings.memory_reserve;
  return cluster.stack.reserve > 0 ? cluster.stack.reserve : kMemoryReserve;
}

double memory_per_rank(const Settings& settings, const cluster::Cluster& cluster) {
  if (settings.spills) return 0;
  if (settings.memory_limit > 0) return settings.memory_limit;
  return device_memory(cluster) * (1 - memory_reserve(settings, cluster));
}

double simpler_within(const Settings& settings, const cluster::Cluster& cluster) {
  constexpr double kMost = 0.03;
  return settings.simpler_within.value_or(std::min(kMost, cost::step_uncertainty(cluster).share));
}

cluster::Cluster alone(const cluster::Cluster& cluster) {
  if (cost::is_local(cluster)) return {"LOCAL 1", cluster.device, {cluster::Axis{"rank", 1, {}}}};
  cluster::Cluster one = one_of(cluster.device);
  one.stack = cluster.stack;
  return one;
}

}  // namespace weft::planner
