// weft/collectives/synthesis/forest.h -- trees on which a collective attains the optimal bandwidth.
//
//   all_gather       trees from every root                     optimum = ranks * rate of a root
//   reduce_scatter   trees to every root                       the same on the reversed links
//   all_reduce       one after the other                       1 / (1 / scatter + 1 / gather)
//   broadcast        trees from one root                       optimum = its rate
//   reduce           trees to one root
//
// The optimum is the collective's algorithm bandwidth: message bytes, as nccl-tests counts them,
// over time. It is exact. The trees attain it, or `planned` if rounding to a feasible number of
// trees or chunks costs something. The optimum of an all_reduce is for its two halves in sequence.
// Programs overlap them, and may exceed it if different links limit the outgoing and incoming rates
// of devices.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/routed_trees.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct Forest {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t ranks = 0, root = 0;
  double optimum = 0, planned = 0;  // bytes per second
  // If a switch that reduces and copies determines the optimum of an all_reduce: that switch, and
  // the rate of trees of devices without it. The trees and programs are those of devices.
  std::int32_t switch_root = -1;
  double without_switches = 0;
  std::vector<std::int32_t> bottleneck;  // topology nodes whose outgoing links limit the rate of their roots
  std::vector<Tree> down, up;            // see tree_program.h
  Routes routes;                         // paths of the edges that do not use the shortest
  Amount trees = 0;                      // per root and direction
  bool whole = true;  // shares are multiples of 1 / trees; otherwise Tree::times is rounded
};

// Fractional trees saturate links of any rates; whole trees are the same on every machine.
enum class TreeShares : bool { whole, fractions };

// More than 256 devices that are not all equivalent get only the optimum, no trees. Fails if the
// topology does not connect its devices, for collectives without trees, and if the time does not
// suffice for any trees.
Result<Forest> grow_forest(const cluster::Topology& topology, collective::Kind kind, std::int32_t root,
                           const Deadline& deadline = {}, TreeShares shares = TreeShares::fractions);

// Computes only the optimum.
Result<Forest> bound_forest(const cluster::Topology& topology, collective::Kind kind, std::int32_t root,
                            const Deadline& deadline = {});

}  // namespace weft::synthesis
