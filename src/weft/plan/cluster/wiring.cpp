// topology_of(): builds the network of a cluster from the shapes of its links.
#include <array>

#include <fmt/format.h>

#include "weft/plan/cluster/topology.h"

namespace weft::cluster {
namespace {

struct Cable {
  std::int32_t a, b, links;
};

// DGX-1 with V100s: six NVLinks per device. Two squares with diagonals, joined corner to corner.
constexpr std::int32_t kCubeLinks = 6;
constexpr auto kHybridCubeMesh = std::to_array<Cable>({{0, 1, 2},
                                                       {0, 2, 1},
                                                       {0, 3, 1},
                                                       {0, 4, 2},
                                                       {1, 2, 1},
                                                       {1, 3, 2},
                                                       {1, 5, 1},
                                                       {2, 3, 2},
                                                       {2, 6, 2},
                                                       {3, 7, 1},
                                                       {4, 5, 2},
                                                       {4, 6, 1},
                                                       {4, 7, 1},
                                                       {5, 6, 1},
                                                       {5, 7, 2},
                                                       {6, 7, 2}});

// Eight MI250X on one board, two GCDs each: seven Infinity Fabric links per GCD, four of them to
// its twin.
constexpr std::int32_t kTwinLinks = 7;
constexpr auto kMi250 = std::to_array<Cable>(
    {{0, 1, 4},   {0, 4, 2},   {0, 8, 1},   {1, 5, 1},   {1, 9, 1},   {1, 10, 1},  {2, 3, 4},
     {2, 6, 1},   {2, 9, 1},   {2, 10, 1},  {3, 7, 2},   {3, 11, 1},  {4, 5, 4},   {4, 6, 1},
     {5, 6, 1},   {5, 7, 1},   {6, 7, 4},   {8, 9, 4},   {8, 12, 2},  {9, 13, 1},  {10, 11, 4},
     {10, 14, 1}, {11, 15, 2}, {12, 13, 4}, {12, 14, 1}, {13, 14, 1}, {13, 15, 1}, {14, 15, 4}});

// Wires the devices [first, first + count) of one node.
class Board {
 public:
  Board(Topology& topology, const Link& link, std::int32_t first, std::int64_t count)
      : topology_(topology), link_(link), first_(first), count_(static_cast<std::int32_t>(count)) {}

  void wire() {
    switch (link_.shape) {
      case Shape::unstated:
      case Shape::switched: through_switch(); break;
      case Shape::ring: grid({count_}, true); break;
      case Shape::full:
        for (std::int32_t a = 0; a < count_; ++a)
          for (std::int32_t b = a + 1; b < count_; ++b) cable(a, b, 1.0 / (count_ - 1));
        break;
      case Shape::mesh: grid(link_.sides, false); break;
      case Shape::torus: grid(link_.sides, true); break;
      case Shape::hybrid_cube_mesh:
        for (const Cable& c : kHybridCubeMesh) cable(c.a, c.b, double(c.links) / kCubeLinks);
        break;
      case Shape::mi250:
        for (const Cable& c : kMi250) cable(c.a, c.b, double(c.links) / kTwinLinks);
        break;
    }
  }

 private:
  void cable(std::int32_t a, std::int32_t b, double share) {
    topology_.add_cable(first_ + a, first_ + b, link_.bytes_per_second * share, link_.latency_seconds);
  }

  void through_switch() {
    const std::int32_t hub =
        topology_.add_node(NodeKind::switch_, fmt::format("{} switch {}", link_.name, first_ / count_));
    for (std::int32_t d = 0; d < count_; ++d)
      topology_.add_cable(first_ + d, hub, link_.bytes_per_second, link_.latency_seconds / 2);
  }

  // Every device has two ports along each side. On a closed side of length two, both lead to the
  // same neighbour.
  void grid(const std::vector<std::int64_t>& sides, bool closed) {
    const double port = 0.5 / static_cast<double>(sides.size());
    std::int64_t stride = count_;
    for (const std::int64_t side : sides) {
      stride /= side;
      for (std::int32_t d = 0; d < count_; ++d) {
        const std::int64_t at = d / stride % side;
        const auto next = static_cast<std::int32_t>(d + stride),
                   around = static_cast<std::int32_t>(d - at * stride);
        if (at + 1 < side)
          cable(d, next, closed && side == 2 ? 2 * port : port);
        else if (closed && side > 2)
          cable(d, around, port);
      }
    }
  }

  Topology& topology_;
  const Link& link_;
  std::int32_t first_, count_;
};

void wire_across(Topology& topology, const Axis& across, std::int64_t inside) {
  const Link& link = across.link;
  const bool leaves = link.oversubscribed > 1;
  // Four hops through leaf and spine, two through one switch; the stated latency is end to end.
  const double hop = link.latency_seconds / (leaves ? 4 : 2);
  const std::int32_t spine = topology.add_node(NodeKind::switch_, fmt::format("{} spine", link.name));
  for (std::int32_t node = 0, device = 0; node < across.size; ++node) {
    std::int32_t above = spine;
    if (leaves) {
      above = topology.add_node(NodeKind::switch_, fmt::format("{} leaf {}", link.name, node));
      topology.add_cable(above, spine, link.bytes_per_second * double(inside) / link.oversubscribed, hop);
    }
    for (std::int64_t d = 0; d < inside; ++d, ++device) {
      const std::int32_t nic = topology.add_node(NodeKind::nic, fmt::format("{} nic {}", link.name, device));
      topology.add_cable(device, nic, link.bytes_per_second, 0);
      topology.add_cable(nic, above, link.bytes_per_second, hop);
    }
  }
}

}  // namespace

void wire_node(Topology& topology, const Link& link, std::int32_t first, std::int64_t count) {
  Board(topology, link, first, count).wire();
}

Result<Topology> topology_of(const Cluster& cluster) {
  WEFT_CHECK(cluster.axes.size() == 2);
  const Axis &across = cluster.axes[0], &within = cluster.axes[1];
  if (const std::int64_t wanted = devices_of(within.link, within.size); wanted != within.size)
    return user_error(
        fmt::format("a {} has {} devices, the node has {}", name(within.link.shape), wanted, within.size));
  // Check before building: a link for every pair of devices in a large node would exhaust memory.
  const double devices = static_cast<double>(cluster.devices());
  const double pairs = within.link.shape == Shape::full ? devices * double(within.size - 1) : 0;
  if (devices * 3 > static_cast<double>(kMostNodes) || pairs > static_cast<double>(kMaxLinks) / 2)
    return user_error(fmt::format("cluster {} has too many devices to model every link: {}", cluster.name,
                                  cluster.devices()),
                      "use a cluster with fewer nodes");
  Topology topology;
  topology.name = cluster.name;
  for (std::int64_t d = 0; d < cluster.devices(); ++d)
    topology.add_node(NodeKind::device, fmt::format("{} {}", cluster.device.name, d));
  if (within.size > 1)
    for (std::int32_t node = 0; node < across.size; ++node)
      wire_node(topology, within.link, static_cast<std::int32_t>(node * within.size), within.size);
  if (across.size > 1) wire_across(topology, across, within.size);
  WEFT_TRY_STATUS(check(topology));
  return topology;
}

}  // namespace weft::cluster
