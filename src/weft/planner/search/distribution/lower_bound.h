// weft/planner/search/distribution/lower_bound.h -- what a step takes on a cluster at least, however it is spread.
//
// Three floors, of which the highest counts. Each holds for every plan, whatever it slices, copies or moves:
//
//   arithmetic   All of it is done by some device, and together they do no more than their peak rates.
//   memory       Every parameter and optimizer state that an update reads is read by some rank and written
//                again; all memories together move no more than their bandwidths. What else is read may be
//                there already, so it does not count. Left out for LOCAL ranks, whose caches may hold it all.
//   a message    Take an output that is one number, such as a loss, what it depends on wholly, and devices
//                inside one unit of a cluster axis (a GPU, a node). Either some unit computes all of that
//                alone, or a message crosses into the unit that makes the number, and that takes the latency
//                of the quickest link out of it.
//
// There is no floor by the bytes that must be moved. The classic ones for products (Hong and Kung; Irony,
// Toledo, Tiskin) count what a rank reads and did not compute itself, and with the arithmetic of an even
// share a rank can compute more values of a deep network itself than the products it owes need: they come out
// as nothing for all models here.
#pragma once
#include <string>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::search {

struct LowerBound {
  double seconds = 0;
  std::string why;  // "its arithmetic at the peak rate of 64 h100"
};

// `devices_a_rank`: processors of this machine that a local rank has.
LowerBound lower_bound(const plan::Graph& graph, const cluster::Cluster& cluster, int devices_a_rank = 1);

}  // namespace weft::search
