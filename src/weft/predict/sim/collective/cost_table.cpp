#include "weft/predict/sim/collective/cost_table.h"

namespace weft::sim {

std::vector<std::int64_t> message_sizes(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size > 0 && size <= most; size = size > most / 2 ? most + 1 : size * 2)
    sizes.push_back(size);
  return sizes;
}

Result<std::vector<CostRow>> cost_table(const collective::Actions& actions, const cluster::Topology& topology,
                                        std::span<const std::int64_t> sizes,
                                        const RunParameters& parameters) {
  std::vector<CostRow> rows;
  const double factor = collective::bus_factor(actions.collective.kind, actions.collective.ranks);
  for (const std::int64_t bytes : sizes) {
    WEFT_TRY(time, simulate(actions, topology, bytes, parameters));
    const double pace = time.seconds > 0 ? static_cast<double>(bytes) / time.seconds : 0;
    rows.push_back({bytes, time.seconds, pace, pace * factor});
  }
  return rows;
}

}  // namespace weft::sim
