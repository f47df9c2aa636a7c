// weft/planner/target/machine.h -- what a target offers a plan: memory, workers, and what work and exchanges cost there.
#pragma once
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/exchange_prices.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// Of this machine, as the settings say.
int threads_of(const Settings& settings);

// What a rank of the cluster may take: memory_limit, or what its device has; of LOCAL ranks their part of
// this machine's memory. 0: no limit is known.
double memory_of_a_rank(const Settings& settings, const cluster::Cluster& cluster);

// Threads of a rank: of one on this machine as TRAIN would start it, else 1.
int workers_of(const Settings& settings, const cluster::Cluster& cluster);

// Whether ranks of this machine move bytes beside computing: as the setting says, else where that takes no
// processor from a worker.
bool overlaps(const Settings& settings, std::int64_t ranks, int workers);

// What steps on the cluster cost, with the transport and the algorithms that are set for LOCAL ranks.
exchange::CostsOn costs_of(const cluster::Cluster& cluster, const Settings& settings, int workers);

// What steps on the cluster cost and how its ranks run them, with what was measured on this machine where
// they are LOCAL. REQUIRES: the cluster outlives it.
search::Machine machine_of(const Settings& settings, const cluster::Cluster& cluster);

// One of its devices, for itself: its mesh is rank=1.
cluster::Cluster alone(const cluster::Cluster& cluster);

}  // namespace weft::planner
