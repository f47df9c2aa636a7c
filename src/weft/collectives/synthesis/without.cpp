#include "weft/collectives/synthesis/without.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/number.h"

namespace weft::synthesis {
namespace {

using cluster::DirectedLink;
using cluster::Topology;

std::optional<std::int32_t> whole(std::string_view text) { return read_number<std::int32_t>(text, 0); }

// Keeps the links for which `keep` is true, and remaps the pairs of half-duplex links.
template <class Keep>
void keep_links(Topology& topology, Keep keep) {
  std::vector<std::int32_t> moved(topology.links.size(), -1);
  std::vector<DirectedLink> kept;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    if (!keep(topology.links[l])) continue;
    moved[l] = static_cast<std::int32_t>(kept.size());
    kept.push_back(topology.links[l]);
  }
  for (DirectedLink& link : kept)
    if (link.shares_with >= 0) link.shares_with = moved[static_cast<std::size_t>(link.shares_with)];
  topology.links = std::move(kept);
}

// Also removes switches and network cards that have lost all their links.
void drop_idle(Topology& topology) {
  std::vector<bool> joined(topology.nodes.size(), false);
  for (const DirectedLink& link : topology.links)
    joined[static_cast<std::size_t>(link.from)] = joined[static_cast<std::size_t>(link.to)] = true;
  std::vector<std::int32_t> moved(topology.nodes.size(), -1);
  std::vector<cluster::Node> kept;
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    if (!joined[n] && n >= static_cast<std::size_t>(topology.devices)) continue;
    moved[n] = static_cast<std::int32_t>(kept.size());
    kept.push_back(topology.nodes[n]);
  }
  topology.nodes = std::move(kept);
  for (DirectedLink& link : topology.links) {
    link.from = moved[static_cast<std::size_t>(link.from)];
    link.to = moved[static_cast<std::size_t>(link.to)];
  }
}

Result<Topology> without_link(const Topology& topology, std::int32_t a, std::int32_t b) {
  Topology left = topology;
  keep_links(left, [&](const DirectedLink& link) {
    return !((link.from == a && link.to == b) || (link.from == b && link.to == a));
  });
  if (left.links.size() == topology.links.size())
    return user_error(fmt::format("no link connects nodes {} and {}", a, b),
                      "nodes are numbered as in the topology, devices first");
  return left;
}

Result<Topology> without_device(const Topology& topology, std::int32_t gpu) {
  if (gpu >= topology.devices)
    return user_error(fmt::format("there is no device {}: {} has {}", gpu, topology.name, topology.devices));
  Topology left = topology;
  keep_links(left, [&](const DirectedLink& link) { return link.from != gpu && link.to != gpu; });
  left.nodes.erase(left.nodes.begin() + gpu);
  --left.devices;
  for (DirectedLink& link : left.links) {
    if (link.from > gpu) --link.from;
    if (link.to > gpu) --link.to;
  }
  drop_idle(left);
  return left;
}

}  // namespace

Result<Topology> without(const Topology& topology, std::string_view lost) {
  const std::size_t colon = lost.find(':');
  const std::string_view what = lost.substr(0, colon);
  const std::string_view which = colon == std::string_view::npos ? "" : lost.substr(colon + 1);
  if (what == "gpu")
    if (const auto gpu = whole(which)) return without_device(topology, *gpu);
  if (const std::size_t dash = which.find('-'); what == "link" && dash != std::string_view::npos) {
    const auto a = whole(which.substr(0, dash)), b = whole(which.substr(dash + 1));
    if (a && b) return without_link(topology, *a, *b);
  }
  return user_error(fmt::format("expected a lost link or device, found {}", lost),
                    "for example link:3-5, gpu:12");
}

}  // namespace weft::synthesis
