#include "weft/planner/target/slowness.h"

#include <algorithm>
#include <utility>

#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {

search::Machine slowed(search::Machine machine, const cluster::Cluster& cluster, const Slowness& slowness) {
  if (slowness.compute == 1 && slowness.links.empty()) return machine;
  const auto link_factors = [&cluster, slowness](const plan::Mesh& mesh) -> Result<std::vector<double>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<double> factors;
    for (const cost::MeshLink& link : links) factors.push_back(slowness.link(link.cluster_axis));
    return factors;
  };
  machine.costs = [costs = std::move(machine.costs), link_factors,
                   compute = slowness.compute](const plan::Mesh& mesh) -> Result<cost::StepCosts> {
    WEFT_TRY(priced, costs(mesh));
    WEFT_TRY(factors, link_factors(mesh));
    priced.compute = [price = std::move(priced.compute), compute](const program::Program& program,
                                                                  const program::Task& task) {
      cost::TaskCost slow = price(program, task);
      slow.seconds *= compute;
      return slow;
    };
    priced.exchange = [price = std::move(priced.exchange), factors](const program::Exchange& exchange,
                                                                    std::size_t axis, std::int64_t bytes) {
      cost::ExchangeCost slow = price(exchange, axis, bytes);
      slow.latency_seconds *= factors[axis];
      slow.transfer_seconds *= factors[axis];
      return slow;
    };
    return priced;
  };
  machine.prices = [prices = std::move(machine.prices),
                    link_factors](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(priced, prices(mesh));
    WEFT_TRY(factors, link_factors(mesh));
    for (std::size_t axis = 0; axis < priced.size(); ++axis) {
      priced[axis].latency_seconds *= factors[axis];
      priced[axis].bytes_per_second /= factors[axis];
    }
    return priced;
  };
  Hasher hasher;
  hasher.digest_of(machine.digest).real(slowness.compute);
  for (const double link : slowness.links) hasher.real(link);
  machine.digest = hasher.digest();
  return machine;
}

bool differs(const Slowness& now, const Slowness& before) {
  constexpr double kHalf = 1.5;
  const auto apart = [](double a, double b) { return std::max(a, b) >= kHalf * std::min(a, b); };
  if (apart(now.compute, before.compute)) return true;
  for (std::size_t axis = 0; axis < std::max(now.links.size(), before.links.size()); ++axis)
    if (apart(now.link(axis), before.link(axis))) return true;
  return false;
}

}  // namespace weft::planner
