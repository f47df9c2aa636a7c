// weft/plan/cluster/topology.h -- which wires there are: devices, switches and network cards, and the links
// between them.
//
//   0 --> [switch] --> 1        nodes   devices first, 0 and 1, then what only passes bytes on
//   |                           links   directed: a cable is two of them, one each way
//   +---> [nic] --> [fabric]    route   the links that lead from one device to another, in order
//
// Where several links enter and leave a switch, each has its own rate; a switch that cannot serve all of them
// at once has a rate of its own, and one that computes says so. The two links of a cable that carries one way at a time share their rate.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::cluster {

enum class NodeKind : std::uint8_t { device, nic, host, switch_ };

struct Node {
  NodeKind kind = NodeKind::device;
  bool copies = false;   // what comes in once, it sends on to many (multicast of NVSwitch, SHARP)
  bool reduces = false;  // what comes in from many, it adds up and sends on once (SHARP)
  std::string name;
  double bytes_per_second = 0;  // that may pass through it at once; 0: whatever its links carry
};

struct DirectedLink {
  std::int32_t from = 0, to = 0;  // nodes
  double bytes_per_second = 0;
  double latency_seconds = 0;
  std::int32_t shares_with = -1;  // the other way of a half duplex cable, which names this one in turn
};

struct Topology {
  std::string name;
  std::int32_t devices = 0;  // nodes [0, devices)
  std::vector<Node> nodes;
  std::vector<DirectedLink> links;

  // A node or a link, and its number. add_cable() adds a link each way and returns the first.
  std::int32_t add_node(NodeKind kind, std::string node_name);
  std::int32_t add_link(std::int32_t from, std::int32_t to, double bytes_per_second, double latency_seconds);
  std::int32_t add_cable(std::int32_t a, std::int32_t b, double bytes_per_second, double latency_seconds);
};

inline constexpr std::int64_t kMostNodes = 1 << 18;
inline constexpr std::int64_t kMostLinks = 1 << 20;

// Devices come first, links join nodes that exist, rates are positive and finite, no more than the limits.
Status check(const Topology& topology);

// A name for people: "gpu 3 to switch 0".
std::string print(const Topology& topology, const DirectedLink& link);

// The wires of a cluster. Rank r of a collective is device r: the devices of node 0, then those of node 1.
//
// Within a node, by the link's shape (see cluster.h), its rate being what a device has in all its ports:
//   switch, or none stated   a cable from every device to one switch
//   ring                     half the rate to either neighbour
//   full                     a cable between any two devices, 1/(n-1) of the rate each
//   mesh(a, b), torus(a, b)  a cable to every neighbour along either side, 1/4 of the rate each; a torus
//                            closes its rows
//   hybrid_cube_mesh         eight V100s of a DGX-1: six NVLinks a device, to four others, one or two each
//   mi250                    eight MI250X of two halves each: seven links a half, one to four of them to
//                            another
//
// Across nodes every device has a network card of its own on a fat tree. Where it is oversubscribed k times,
// the cards of a node share a leaf switch whose cable upwards carries 1/k of what they can send together.
// Fails where the nodes and links would exceed the limits.
Result<Topology> topology_of(const Cluster& cluster);

// Wires the devices [first, first + count) as a node of that link, adding what switch it needs.
// REQUIRES: they are there, and devices_of(link, count) == count
void wire_node(Topology& topology, const Link& link, std::int32_t first, std::int64_t count);

}  // namespace weft::cluster
