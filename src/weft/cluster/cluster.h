// weft/cluster/cluster.h -- devices, the links between them, and the mesh they form.
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
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/cluster/device.h"

namespace weft::cluster {

struct Link {
  std::string name;
  double bytes_per_second = 0;  // each way, per device
  double latency_seconds = 0;
};

struct Axis {
  std::string name;
  std::int64_t size = 1;
  Link link;  // what joins neighbours along this axis; nameless when none was declared
};

struct Cluster {
  std::string name;
  Device device;
  std::vector<Axis> axes;  // outermost first

  std::int64_t devices() const {
    std::int64_t product = 1;
    for (const Axis& axis : axes) product *= axis.size;
    return product;
  }
};

}  // namespace weft::cluster
