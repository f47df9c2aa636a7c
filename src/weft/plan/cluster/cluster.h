// weft/plan/cluster/cluster.h -- devices, the links between them, and the mesh they form.
//
//   CREATE CLUSTER pod AS 4 NODES OF 8 DEVICES h100
//     LINK gpu WITHIN node (450 GB/s, 1.5 us)
//     LINK ib  ACROSS node (50 GB/s, 5 us)
//
//   node 0: [0 1 2 3 4 5 6 7] -- gpu        mesh axes, outermost first:
//   node 1: [8 9 ...        ]                 node = 4   (ib)
//      |                                      gpu  = 8   (gpu)
//      ib
//
// The inner axis bears the name of the link within a node, or `device` when there is none.
//
//   CREATE CLUSTER mixed AS 2 NODES OF 8 DEVICES v100, 1 NODES OF 8 DEVICES a100 ..
//
// has devices of several kinds, node by node in this order. Where all of them get equal shares, everybody waits for
// the slowest and none holds more than the smallest: `device` is then the weakest of the kinds in everything.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/plan/cluster/device.h"

namespace weft::cluster {

// How the devices of a node are wired, where its link says: topology.h draws them all.
enum class Shape : std::uint8_t { unstated, switched, ring, full, mesh, torus, hybrid_cube_mesh, mi250 };
constexpr std::size_t kShapes = 8;

std::string_view name(Shape shape);  // "torus" as SHAPE writes it; nothing for `unstated`
std::optional<Shape> find_shape(std::string_view name);

struct Link {
  std::string name;
  double bytes_per_second = 0;  // each way, per device
  double latency_seconds = 0;
  Shape shape = Shape::unstated;
  std::vector<std::int64_t> sides;  // mesh and torus: their product is the number of devices
  double oversubscribed = 1;        // across nodes: how many times what they send exceeds what gets through
};

// How many devices a node must have for the shape of its link: 8 for a hybrid_cube_mesh, the product of its
// sides for a torus (0 where they make none), and `any` where every number will do.
std::int64_t devices_of(const Link& link, std::int64_t any);

struct Axis {
  std::string name;
  std::int64_t size = 1;
  Link link;  // what joins neighbours along this axis; nameless when none was declared
};

// Nodes that follow one another and have the same devices.
struct DeviceKind {
  std::int64_t nodes = 1;
  Device device;
};

struct Cluster {
  std::string name;
  Device device;
  std::vector<Axis> axes;              // outermost first
  std::vector<DeviceKind> kinds = {};  // of a mixed cluster; else empty

  std::int64_t devices() const {
    std::int64_t product = 1;
    for (const Axis& axis : axes) product *= axis.size;
    return product;
  }
  bool is_mixed() const { return !kinds.empty(); }
};

// What the slowest and smallest of them have, in everything; its name has all of theirs. REQUIRES: there is one.
Device weakest_of(std::span<const Device> devices);
// The same of some nodes of a cluster. REQUIRES: it has them, and there is one.
Device device_of_nodes(const Cluster& cluster, std::span<const std::int64_t> nodes);
// "16 v100, 8 a100"; of a cluster that is not mixed the device alone.
std::string print_devices(const Cluster& cluster);

}  // namespace weft::cluster
