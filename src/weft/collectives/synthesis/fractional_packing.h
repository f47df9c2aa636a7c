// weft/collectives/synthesis/fractional_packing.h -- shares of trees or paths of least congestion.
//
//   groups     demands to carry, each once: the block of a root, or of a pair of devices
//   columns    options for a demand: a spanning tree, a path, each given by the capacities that it uses
//
//   minimize congestion + cost of columns     shares of a group add up to 1
//                                             load of a capacity <= congestion * capacity
//
// A linear program with far more columns than can be listed, solved by column generation (Ford and
// Fulkerson 1958, Dantzig and Wolfe 1960). The simplex method works on some columns; its duals are
// prices of capacities; an oracle returns the cheapest column of each group under these prices. The
// prices also prove a bound:
//
//   congestion >= sum over groups of the cheapest column's price,  where prices * capacities add up to 1
//
// A basic solution has hardly more columns than there are capacities and groups, so programs stay
// short.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"

namespace weft::synthesis {

struct PackedColumn {
  std::int32_t group = 0;
  std::vector<std::int32_t> uses;  // capacities, repeated if used several times
  std::int32_t label = -1;         // set by the oracle: identifies the column
  double cost = 0;                 // its own cost, in units of congestion
  double share = 0;                // fraction of its group
};

// Returns the column of least price for every group. It may also return others with a lower own
// cost.
using CheapestColumns = std::function<std::vector<PackedColumn>(std::span<const double> prices)>;

struct FractionalPacking {
  std::vector<PackedColumn> columns;  // with nonzero share, by group
  double congestion = 0;              // seconds per unit of every group
  double bound = 0;                   // lower bound on the congestion
};

// Stops when the congestion is within `gap` of the bound (or of `known`, a bound that the caller
// has) and new columns would gain less than that, or after a few more rounds.
FractionalPacking pack_fractionally(const std::vector<double>& capacities, std::int32_t groups,
                                    const CheapestColumns& cheapest, double gap, const Deadline& deadline,
                                    double known = 0);

}  // namespace weft::synthesis
