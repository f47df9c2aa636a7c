#include "weft/app/explain/servers.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/collectives/algorithm/summation_service.h"

namespace weft::explain {

std::string print_servers(const sim::Prediction& prediction, const plan::Mesh& mesh, std::int64_t servers,
                          bool share) {
  if (servers == 0) return {};
  struct Served {
    collective::SummationService service;
    std::size_t times = 0;
  };
  std::map<std::string, Served> by_axis;
  for (const sim::EstimatedCollective& collective : prediction.collectives)
    if (const auto service = collective::find_summation_service(collective.price.algorithm)) {
      Served& served = by_axis[collective.axis];
      served.service = *service;
      served.times += collective.times;
    }
  if (by_axis.empty())
    return fmt::format("{} spare host{} unused: all-reduces are as fast without servers", servers,
                       servers == 1 ? "" : "s");
  std::vector<std::string> said;
  for (const auto& [axis, served] : by_axis) {
    const std::int32_t ranks = mesh.axes[static_cast<std::size_t>(mesh.find(axis))].ranks;
    const collective::SummationService& service = served.service;
    const double part =
        static_cast<double>(service.servers * service.served) / static_cast<double>(service.chunks(ranks));
    const double rate = share ? static_cast<double>(ranks) / mesh.ranks() : 1;
    said.push_back(
        fmt::format("{} sum{} {:.0f} % of {} all-reduce{} along {}: the busiest card carries {:.3g} times {} "
                    "bytes in each direction, {:.3g} times without servers",
                    service.servers, service.servers == 1 ? "s" : "", 100 * part, served.times,
                    served.times == 1 ? "" : "s", axis, collective::busiest_card(service, ranks, rate),
                    served.times == 1 ? "its" : "their", 2.0 * (ranks - 1) / ranks));
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

}  // namespace weft::explain
