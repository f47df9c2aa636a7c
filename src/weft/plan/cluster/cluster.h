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
// The inner axis has the name of the link within a node, or `device` if none is declared.
//
//   CREATE CLUSTER mixed AS 2 NODES OF 8 DEVICES v100, 1 NODES OF 8 DEVICES a100 ..
//
// has several kinds of devices, node by node in this order. Where all devices get equal shares,
// every device waits for the slowest and none can hold more than the smallest. `device` is then the
// minimum of the kinds in every property.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/plan/cluster/device.h"
#include "weft/plan/cluster/stack.h"

namespace weft::cluster {

// How the devices of a node are wired, if the link states it. topology.h describes every shape.
enum class Shape : std::uint8_t { unstated, switched, ring, full, mesh, torus, hybrid_cube_mesh, mi250 };
constexpr std::size_t kShapes = 8;

std::string_view name(Shape shape);  // as written after SHAPE: "torus"; empty for `unstated`
std::optional<Shape> find_shape(std::string_view name);

// The measured share of a link's bandwidth that collectives among this many nodes reach: large fabrics lose some of it.
struct LinkShare {
  std::int64_t nodes = 2;
  double share = 1;
};

struct Link {
  std::string name;
  double bytes_per_second = 0;  // per direction and device
  double latency_seconds = 0;
  Shape shape = Shape::unstated;
  std::vector<std::int64_t> sides = {};  // mesh and torus: their product is the number of devices
  double oversubscribed = 1;             // across nodes: bandwidth below over above the leaf switch
  std::vector<LinkShare> scaling = {};   // across nodes, by ascending number of nodes; may be empty
};

// The share for collectives among this many nodes: interpolated over the logarithm of the nodes; as at the ends
// beyond them. 1 without `scaling`.
double share_among(const Link& link, std::int64_t nodes);

// The number of devices a node must have for its link's shape: 8 for hybrid_cube_mesh, the product
// of the sides for a mesh or torus (0 if the sides are invalid), and `any` where every number is
// allowed.
std::int64_t devices_of(const Link& link, std::int64_t any);

struct Axis {
  std::string name;
  std::int64_t size = 1;
  Link link;  // connects neighbours along this axis; has no name if none was declared
  // Consecutive devices along it that share a node, if the axis has several devices of each node. The next axis's link
  // connects them, and each has its own port of this axis's link.
  std::int64_t per_node = 1;
};

// Consecutive nodes with the same devices.
struct DeviceKind {
  std::int64_t nodes = 1;
  Device device;
};

struct Cluster {
  std::string name;
  Device device;
  std::vector<Axis> axes;              // outermost first
  std::vector<DeviceKind> kinds = {};  // of a mixed cluster, else empty
  Stack stack = {};                    // software that trains there

  std::int64_t devices() const {
    std::int64_t product = 1;
    for (const Axis& axis : axes) product *= axis.size;
    return product;
  }
  bool is_mixed() const { return !kinds.empty(); }
};

// A device as slow and small as the worst of `devices` in every property. Its name joins all their
// names. REQUIRES: `devices` is not empty.
Device weakest_of(std::span<const Device> devices);
// The same for some nodes of a cluster. REQUIRES: the nodes exist, and there is at least one.
Device device_of_nodes(const Cluster& cluster, std::span<const std::int64_t> nodes);
// "16 v100, 8 a100"; only the device name if the cluster is not mixed.
std::string print_devices(const Cluster& cluster);

}  // namespace weft::cluster
