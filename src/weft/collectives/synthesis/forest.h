// weft/collectives/synthesis/forest.h -- the trees along which a collective moves as fast as the wires allow.
//
//   all_gather       trees from every root                     optimum = ranks * rate of a root
//   reduce_scatter   trees to every root                       the same on the wires turned round
//   all_reduce       one after the other                       1 / (1 / scatter + 1 / gather)
//   broadcast        trees from one root                       optimum = its rate
//   reduce           trees to one root
//
// The optimum is the collective's algorithm bandwidth: bytes of the message, as nccl-tests counts them, over
// time. It is exact; the trees carry all of it, or `planned` where whole numbers of trees or chunks that a
// program can have must round. That of an all_reduce is of its two halves one after the other: programs overlap them,
// and where what leaves devices and what reaches them is limited by other wires they may be quicker than it.
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
  // Where a switch that adds and copies makes the optimum of an all_reduce: that switch, and what trees of
  // devices have without it. Trees and programs are those of devices.
  std::int32_t switch_root = -1;
  double without_switches = 0;
  std::vector<std::int32_t>
      bottleneck;              // nodes of the topology: what their roots have leaves them too slowly
  std::vector<Tree> down, up;  // see tree_program.h
  Routes routes;               // of their edges, where the shortest would not do
  Amount trees = 0;            // of each root, one way
  bool whole = true;           // shares are multiples of 1 / trees; else Tree::times are the nearest to them
};

// Trees in fractions fill links of any rates; whole ones are the same on every machine.
enum class TreeShares : bool { whole, fractions };

// More than 256 devices that are not alike get no trees, only the optimum.
// Fails where the topology does not join its devices, for collectives that trees do not make, and where the
// time does not suffice for trees at all.
Result<Forest> grow_forest(const cluster::Topology& topology, collective::Kind kind, std::int32_t root,
                           const Deadline& deadline = {}, TreeShares shares = TreeShares::fractions);

// The optimum alone.
Result<Forest> bound_forest(const cluster::Topology& topology, collective::Kind kind, std::int32_t root,
                            const Deadline& deadline = {});

}  // namespace weft::synthesis
