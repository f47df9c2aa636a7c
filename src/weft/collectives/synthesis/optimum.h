// weft/collectives/synthesis/optimum.h -- the exact rate at which every root can send to all.
//
//   gpu 0..3 in one box, 4..7 in another, 50 GB/s between them:
//   the data of four roots leaves a box over 50 GB/s, so that no root sends faster than 12.5 GB/s
//
// For any set S of nodes that excludes some device, the data of its roots must leave it:
//
//   rate * |roots in S| <= capacity out of S
//
// The smallest of these bounds is attained (Edmonds 1973 for one root; with forwarding switches,
// Bang-Jensen, Frank, Jackson 1995). It is found by max-flow: a source feeds `rate` into every
// root, and every device must receive all of it. If one receives less, the minimum cut gives a
// smaller bound, which is tried next (Newton's method). Bounds only decrease, so a device that
// received everything at a higher rate need not be tested again.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A rate of `over` units per `under` time units, in lowest terms.
struct Ratio {
  Amount over = 0, under = 1;

  double value() const { return static_cast<double>(over) / static_cast<double>(under); }
  friend bool operator==(const Ratio&, const Ratio&) = default;
};

struct Optimum {
  Ratio rate;                      // capacity units that each root sends to all
  std::vector<std::int32_t> side;  // the nodes of the limiting cut
  bool exact = true;               // false: time ran out; an upper bound
};

// `roots` is sorted. `alike`: all devices are equivalent, so one is tested.
// REQUIRES: every device can be reached from every root.
Optimum find_optimum(const Wires& wires, const std::vector<std::int32_t>& roots,
                     const Deadline& deadline = {}, bool alike = false);

}  // namespace weft::synthesis
