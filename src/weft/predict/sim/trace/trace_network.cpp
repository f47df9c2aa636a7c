#include "weft/predict/sim/trace/trace_network.h"

#include <cmath>

#include <fmt/format.h>

namespace weft::sim {
namespace {

constexpr std::int64_t kMostRanks = 1 << 16;
constexpr std::int64_t kMostWires = 1 << 24;  // 128 MiB of times

}  // namespace

std::string_view name(TraceDimension::Kind kind) {
  switch (kind) {
    case TraceDimension::Kind::ring: return "Ring";
    case TraceDimension::Kind::switched: return "Switch";
    case TraceDimension::Kind::fully_connected: return "FullyConnected";
  }
  return {};
}

std::int32_t TraceNetwork::ranks() const { return stride(dimensions.size()); }

std::int64_t TraceNetwork::wires() const {
  std::int64_t wires = 0;
  for (const TraceDimension& dimension : dimensions) wires += dimension.wires_per_rank();
  return wires * ranks();
}

std::int32_t TraceNetwork::stride(std::size_t dimension) const {
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < dimension; ++d) stride *= dimensions[d].ranks;
  return stride;
}

std::int32_t TraceNetwork::coordinate(std::int32_t rank, std::size_t dimension) const {
  return rank / stride(dimension) % dimensions[dimension].ranks;
}

Status check(const TraceNetwork& network) {
  if (network.dimensions.empty()) return user_error("the network has no dimensions");
  std::int64_t ranks = 1;
  for (const TraceDimension& dimension : network.dimensions) {
    if (dimension.ranks < 1)
      return user_error(fmt::format("a dimension needs at least one rank: {}", dimension.ranks));
    ranks *= dimension.ranks;
    if (ranks > kMostRanks)
      return user_error(
          fmt::format("the network has more ranks than can be simulated: {} at most", kMostRanks));
    if (!std::isfinite(dimension.bytes_per_second) || dimension.bytes_per_second <= 0)
      return user_error("a dimension needs a bandwidth above 0", "bandwidth: [ 50.0 ] is 50 GiB/s");
    if (!std::isfinite(dimension.latency_seconds) || dimension.latency_seconds < 0)
      return user_error("a latency must not be negative");
  }
  if (network.wires() > kMostWires)
    return user_error(fmt::format("too many links to simulate: {}, at most {}", network.wires(), kMostWires));
  return {};
}

}  // namespace weft::sim
