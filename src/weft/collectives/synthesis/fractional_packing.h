// weft/collectives/synthesis/fractional_packing.h -- the shares of trees or paths that load no link more than they must.
//
//   groups     what must be carried, each once: the block of a root, or of a pair of devices
//   columns    ways to carry one: a spanning tree, a path, each given by the capacities that it uses
//
//   minimize congestion + cost of columns     shares of a group add up to 1
//                                             load of a capacity <= congestion * capacity
//
// A linear program with far more columns than can be listed, solved by column generation (Ford and Fulkerson 1958,
// Dantzig and Wolfe 1960): the simplex method has some columns, its duals are prices of capacities, and an oracle
// returns for each group the cheapest column under these prices. The prices prove a bound as well:
//
//   congestion >= sum over groups of the cheapest column's price,  where prices * capacities add up to 1
//
// A basic solution has hardly more columns than there are capacities and groups, so programs stay short.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"

namespace weft::synthesis {

struct PackedColumn {
  std::int32_t group = 0;
  std::vector<std::int32_t> uses;  // capacities, each as often as it is used
  std::int32_t label = -1;         // of the oracle: which column it is
  double cost = 0;                 // besides, in the unit of the congestion
  double share = 0;                // of its group
};

// The column of every group whose capacities are cheapest; may return others besides, whose own cost is less.
using CheapestColumns = std::function<std::vector<PackedColumn>(std::span<const double> prices)>;

struct FractionalPacking {
  std::vector<PackedColumn> columns;  // those with a share, by group
  double congestion = 0;              // seconds per unit of every group
  double bound = 0;                   // no packing has less
};

// Until the congestion is within `gap` of the bound, or of `known`, a bound that the caller has, and columns that are
// generated would gain less than that, or a few more times.
FractionalPacking pack_fractionally(const std::vector<double>& capacities, std::int32_t groups,
                                    const CheapestColumns& cheapest, double gap, const Deadline& deadline,
                                    double known = 0);

}  // namespace weft::synthesis
