// weft/collectives/synthesis/optimum.h -- the rate at which every root can send to all, exactly, and what limits it.
//
//   gpu 0..3 in one box, 4..7 in another, 50 GB/s between them:
//   the data of four roots leaves a box over 50 GB/s, so that no root sends faster than 12.5 GB/s
//
// For a set S of nodes that misses some device, all that its roots have must leave it:
//
//   rate * |roots in S| <= capacity out of S
//
// and the smallest of these bounds is reached (Edmonds 1973 for one root; with switches that only pass on,
// Bang-Jensen, Frank, Jackson 1995). It is found by max-flow: a source gives `rate` to every root, and every
// device must get all of it. Where one gets less, the cut that stops it is a smaller bound, which is tried
// next (Newton's method); as bounds only fall, a device that got all at a higher rate need not be asked again.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A rate of `over` units in `under` turns; lowest terms.
struct Ratio {
  Amount over = 0, under = 1;

  double value() const { return static_cast<double>(over) / static_cast<double>(under); }
  friend bool operator==(const Ratio&, const Ratio&) = default;
};

struct Optimum {
  Ratio rate;                      // units of capacity that each root sends to all
  std::vector<std::int32_t> side;  // the nodes of the cut that allows no more
  bool exact = true;               // else time ran out, and no device has refuted it so far
};

// `roots` is sorted. `alike`: all devices are, and one stands for all.
// REQUIRES: every device can be reached from every root.
Optimum find_optimum(const Wires& wires, const std::vector<std::int32_t>& roots,
                     const Deadline& deadline = {}, bool alike = false);

}  // namespace weft::synthesis
