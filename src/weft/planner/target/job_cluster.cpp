#include "weft/planner/target/job_cluster.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/planner/target/find_target.h"
#include "weft/planner/target/machine.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {
namespace {

// To two digits, so that costs do not change with every measurement.
double rounded(double value) {
  if (!(value > 0)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

// Measured once per job.
Result<measure::Network> network_of_job(const std::shared_ptr<transport::Job>& job,
                                        const transport::Hosts& hosts) {
  static std::optional<measure::Network> known;  // a process is one rank of one job
  if (!known) {
    WEFT_TRY(measured, measure::measure_network(job, hosts));
    known = measure::Network{rounded(measured.latency_seconds), rounded(measured.bytes_per_second)};
  }
  return *known;
}

bool are_even(const transport::Hosts& hosts) {
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(hosts.count));
  for (const std::int32_t host : hosts.of) ++sizes[static_cast<std::size_t>(host)];
  return std::ranges::all_of(sizes, [&](std::int32_t size) { return size == sizes.front(); });
}

}  // namespace

bool is_job(const language::Catalog& catalog, const language::syntax::Target& target) {
  return !target.local && same_word(target.cluster.text, "JOB") &&
         !catalog.clusters.contains(target.cluster.text) && !catalog.devices.contains(target.cluster.text);
}

cluster::Cluster cluster_of(const transport::Hosts& hosts, const measure::Network& network,
                            const cluster::Device& core) {
  const auto ranks = static_cast<std::int64_t>(hosts.of.size());
  if (hosts.count == 1) return {"JOB", core, {cluster::Axis{"rank", ranks, {}}}};
  cluster::Link link;
  link.name = cost::kNetwork;
  link.bytes_per_second = network.bytes_per_second;
  link.latency_seconds = network.latency_seconds;
  if (!are_even(hosts)) return {"JOB", core, {cluster::Axis{"rank", ranks, link}}};
  return {"JOB",
          core,
          {cluster::Axis{"host", hosts.count, link}, cluster::Axis{"rank", ranks / hosts.count, {}}}};
}

Result<Target> find_job(const language::Catalog& catalog, const language::syntax::Target& target,
                        const Settings& settings) {
  WEFT_TRY(job, run::launched_job());
  if (job == nullptr)
    return user_error(
        "ON JOB needs a launcher, and no launcher started this process",
        "use weft launch -n 4 weft run file.weft, mpirun, srun or torchrun; ON LOCAL 4 starts ranks here",
        target.span);
  const auto core = catalog.devices.find("cpu_core");
  if (core == catalog.devices.end())
    return user_error("JOB needs the device cpu_core, which was dropped", "CREATE DEVICE cpu_core (...)",
                      target.span);
  const transport::Hosts hosts = transport::find_hosts(*job);
  JobHosts placed;
  placed.ranks.resize(static_cast<std::size_t>(hosts.count));
  for (std::int32_t rank = 0; rank < job->ranks(); ++rank)
    placed.ranks[static_cast<std::size_t>(hosts.of[static_cast<std::size_t>(rank)])].push_back(rank);
  measure::Network network;
  if (hosts.count > 1) {
    placed.measured = !settings.running.network;
    if (settings.running.network) {
      network = *settings.running.network;
    } else {
      WEFT_TRY(measured, network_of_job(job, hosts));
      network = measured;
    }
  }
  placed.latency_seconds = network.latency_seconds;
  placed.bytes_per_second = network.bytes_per_second;
  Target found(cluster_of(hosts, network, core->second), TargetKind::job);
  found.hosts = std::move(placed);
  WEFT_TRY(threads, run::from_first_rank(fmt::format("{}", threads_of(settings))));
  // Uses rank 0's number, so that all ranks compile the same programs.
  found.threads = std::max(1, std::atoi(threads.c_str()));
  return found;
}

}  // namespace weft::planner
