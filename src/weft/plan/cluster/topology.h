// weft/plan/cluster/topology.h -- the physical network: devices, switches, cards and links.
//
//   0 --> [switch] --> 1        nodes   devices first, 0 and 1, then nodes that only forward bytes
//   |                           links   directed: a cable is two links, one per direction
//   +---> [nic] --> [fabric]    route   the links that lead from one device to another, in order
//
// Each link of a switch has its own rate. A switch that cannot serve all its links at once has a
// rate of its own, and one that can reduce is marked. The two links of a half-duplex cable share
// their rate.
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
  bool copies = false;   // forwards one incoming message to many (multicast of NVSwitch, SHARP)
  bool reduces = false;  // adds up messages from many and forwards the sum once (SHARP)
  std::string name;
  double bytes_per_second = 0;  // total throughput; 0: limited only by its links
};

struct DirectedLink {
  std::int32_t from = 0, to = 0;  // node numbers
  double bytes_per_second = 0;
  double latency_seconds = 0;
  std::int32_t shares_with = -1;  // the other direction of a half-duplex cable, which names this link in turn
};

struct Topology {
  std::string name;
  std::int32_t devices = 0;  // nodes [0, devices)
  std::vector<Node> nodes;
  std::vector<DirectedLink> links;

  // These return the number of the new node or link. add_cable() adds a link in each direction and
  // returns the first.
  std::int32_t add_node(NodeKind kind, std::string node_name);
  std::int32_t add_link(std::int32_t from, std::int32_t to, double bytes_per_second, double latency_seconds);
  std::int32_t add_cable(std::int32_t a, std::int32_t b, double bytes_per_second, double latency_seconds);
};

inline constexpr std::int64_t kMostNodes = 1 << 18;
inline constexpr std::int64_t kMaxLinks = 1 << 20;

// Succeeds if devices come first, links join existing nodes, rates are positive and finite, and the
// limits above hold.
Status check(const Topology& topology);

// For messages: "gpu 3 to switch 0".
std::string print(const Topology& topology, const DirectedLink& link);

// The physical network of a cluster. Rank r of a collective is device r: the devices of node 0,
// then those of node 1.
//
// Within a node, by the link's shape (see cluster.h). The link's rate is the sum over a device's
// ports:
//   switch, or none stated   a cable from every device to one switch
//   ring                     half the rate to either neighbour
//   full                     a cable between any two devices, each with 1/(n-1) of the rate
//   mesh(a, b), torus(a, b)  a cable to every neighbour along either side, each with 1/4 of the
//                            rate; a torus has wraparound links
//   hybrid_cube_mesh         eight V100s of a DGX-1: six NVLinks per device, one or two to each
//                            of four others
//   mi250                    eight MI250X with two GCDs each: seven links per GCD, one to four of
//                            them to each peer
//
// Across nodes every device has its own network card on a fat tree. If the tree is oversubscribed k
// times, the cards of a node share a leaf switch whose uplink has 1/k of their total bandwidth.
// Fails if the nodes and links would exceed the limits.
Result<Topology> topology_of(const Cluster& cluster);

// Wires the devices [first, first + count) as one node of that link and adds a switch if needed.
// REQUIRES: the devices exist, and devices_of(link, count) == count
void wire_node(Topology& topology, const Link& link, std::int32_t first, std::int64_t count);

}  // namespace weft::cluster
