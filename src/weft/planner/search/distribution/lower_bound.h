// weft/planner/search/distribution/lower_bound.h -- lower bound on a step for any distribution on a cluster.
//
// The highest of three bounds. Each holds for every plan, whatever it slices, copies or moves:
//
//   arithmetic   All arithmetic runs on some device, at no more than its peak rate.
//   memory       Every parameter and optimizer state that an update reads is read by some rank and written
//                back, at no more than the memory bandwidth of all devices. Other reads may hit a cache, so
//                they do not count. Not applied to LOCAL ranks, whose caches may hold everything.
//   a message    Consider a scalar output, such as the loss, everything that it depends on as a whole, and
//                the devices inside one unit of a cluster axis (a GPU, a node). Either one unit computes all
//                of it alone, or a message enters the unit that computes the scalar, which takes at least
//                the latency of the fastest link out of a unit.
//
// There is no bound by communication volume. The classic bounds for products (Hong and Kung; Irony,
// Toledo, Tiskin) count what a rank reads and did not compute itself. With its even share of the
// arithmetic, a rank can compute more values of a deep network itself than its products need, so
// these bounds are zero for all models here.
#pragma once
#include <string>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::search {

struct LowerBound {
  double seconds = 0;
  std::string why;  // "its arithmetic at the peak rate of 64 h100"
};

// `devices_per_rank`: processors of this machine per local rank.
LowerBound lower_bound(const plan::Graph& graph, const cluster::Cluster& cluster, int devices_per_rank = 1);

}  // namespace weft::search
