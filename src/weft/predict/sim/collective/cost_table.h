// weft/predict/sim/collective/cost_table.h -- a program's cost per message size.
//
//   bytes      seconds   algbw       busbw
//   1 MiB      41.2 us   25.5 GB/s   44.5 GB/s     algbw = bytes / seconds, busbw = algbw * bus_factor()
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace weft::sim {

struct CostRow {
  std::int64_t bytes = 0;
  double seconds = 0;
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  // bytes per second
};

// Powers of two from `least` to `most`. REQUIRES: both are powers of two
std::vector<std::int64_t> message_sizes(std::int64_t least = 1 << 10, std::int64_t most = 1 << 30);

Result<std::vector<CostRow>> cost_table(const collective::Actions& actions, const cluster::Topology& topology,
                                        std::span<const std::int64_t> sizes, const RunParameters& parameters);

}  // namespace weft::sim
