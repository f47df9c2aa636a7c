#include "weft/predict/cost/exchange_seconds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "weft/plan/cluster/rates.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

// What a collective costs besides its link. A large group reaches `reach` of the link's rate. A
// small group reaches `small` / ranks less, since fewer channels are open.
struct Protocol {
  double call_seconds, step_seconds, reach, small;
};
constexpr Protocol kStreaming = {31e-6, 1.8e-6, 0.80, 0.28};
constexpr Protocol kFlagged = {16e-6, 0, 0.15, 0};
// The fraction of a network card's rate that streaming reaches.
constexpr double kNetworkReach = 0.9;

struct Algorithm {
  const char* name;
  double steps, sent;  // consecutive steps; bytes sent per rank
};

// A ring crosses each node boundary once per channel, and the channels use different ports of the node.
MeshLink with_all_ports(MeshLink link) {
  if (link.per_node == 1) return link;
  link.bytes_per_second *= link.per_node;
  if (link.within_bytes_per_second > 0)
    link.bytes_per_second = std::min(link.bytes_per_second, link.within_bytes_per_second);
  return link;
}

ExchangeCost price(const Algorithm& algorithm, const MeshLink& link) {
  ExchangeCost best;
  for (const Protocol& protocol : {kStreaming, kFlagged}) {
    ExchangeCost at{.algorithm = algorithm.name};
    at.latency_seconds =
        protocol.call_seconds + algorithm.steps * (protocol.step_seconds + link.latency_seconds);
    const double reach = link.across_nodes && protocol.small > 0
                             ? kNetworkReach
                             : protocol.reach - protocol.small / link.ranks;
    const double rate = link.bytes_per_second * reach;
    at.transfer_seconds = algorithm.sent == 0 ? 0
                          : rate > 0          ? algorithm.sent / rate
                                              : std::numeric_limits<double>::infinity();
    if (best.algorithm.empty() || at.seconds() < best.seconds()) best = at;
  }
  return best;
}

// Data for other nodes uses the port while the rest is exchanged within the node.
ExchangeCost all_to_all(const MeshLink& link, double bytes) {
  const auto share = [&](std::int32_t others) { return static_cast<double>(others) / link.ranks * bytes; };
  ExchangeCost across = price({"all_to_all_direct", 1, share(link.ranks - link.per_node)}, link);
  if (link.per_node == 1) return across;
  MeshLink inside = link;
  inside.across_nodes = false;
  inside.bytes_per_second = link.within_bytes_per_second;
  const ExchangeCost within = price({"all_to_all_direct", 1, share(link.per_node - 1)}, inside);
  return within.seconds() > across.seconds() ? within : across;
}

}  // namespace

double sent_bytes(Kind kind, std::int32_t ranks, double bytes) {
  if (ranks < 2) return 0;
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case Kind::all_reduce: return 2 * others * bytes;
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::all_to_all: return others * bytes;
    case Kind::broadcast_from:
    case Kind::permute_ranks:
    case Kind::halo:
    case Kind::send:
    case Kind::receive: return bytes;
  }
  return bytes;
}

ExchangeCost exchange_seconds(Kind kind, const MeshLink& link, double bytes) {
  if (link.ranks < 2) return {.algorithm = "none"};
  const double sent = sent_bytes(kind, link.ranks, bytes), steps = link.ranks - 1;
  const MeshLink ports = with_all_ports(link);
  switch (kind) {
    case Kind::all_reduce: {
      const double levels = std::bit_width(static_cast<std::uint32_t>(link.ranks - 1));
      const ExchangeCost ring = price({"all_reduce_ring", 2 * steps, sent}, ports);
      ExchangeCost tree = price({"all_reduce_double_binary_tree", 2 * levels, 2 * bytes}, ports);
      return tree.seconds() < ring.seconds() ? tree : ring;
    }
    case Kind::reduce_scatter: return price({"reduce_scatter_ring", steps, sent}, ports);
    case Kind::all_gather: return price({"all_gather_ring", steps, sent}, ports);
    case Kind::all_to_all: return all_to_all(link, bytes);
    case Kind::broadcast_from: return price({"broadcast_chain", steps, sent}, ports);
    case Kind::permute_ranks:
    case Kind::halo:
    case Kind::send:
    case Kind::receive: return price({"send_direct", 1, sent}, link);
  }
  return {};
}

std::optional<ExchangeCost> measured_exchange(const cluster::Device& device, Kind kind, const MeshLink& link,
                                              double bytes) {
  constexpr std::int32_t kMostMeasured = 8;
  if (device.rates == nullptr || link.across_nodes || link.ranks < 2 || link.ranks > kMostMeasured)
    return std::nullopt;
  if (kind != Kind::all_reduce && kind != Kind::reduce_scatter && kind != Kind::all_gather &&
      kind != Kind::all_to_all)
    return std::nullopt;
  const std::string_view name = collective::name(collective_kind(kind));
  const cluster::RateTable* const table = device.rates->find(cluster::RateKind::collective, name);
  if (table == nullptr) return std::nullopt;
  // Tables of NVLink say nothing of a node whose GPUs are connected by PCIe.
  constexpr double kLeastRate = 0.5, kMostRate = 2;
  const double rate = link.bytes_per_second / table->bytes_per_second;
  if (!(rate >= kLeastRate && rate <= kMostRate)) return std::nullopt;
  constexpr double kLeastBytes = 512;
  const auto seconds = [&](double size) {
    return *device.rates->collective_seconds(name, link.ranks, std::max(size, kLeastBytes));
  };
  const double all = seconds(bytes), latency = std::min(all, seconds(kLeastBytes));
  // NCCL chooses the algorithm.
  return ExchangeCost{latency, all - latency, {}, Source::fitted};
}

}  // namespace weft::cost
