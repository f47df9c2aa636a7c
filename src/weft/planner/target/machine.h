// weft/planner/target/machine.h -- memory, workers and costs of a target.
#pragma once
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/exchange_costs.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// Threads on this machine, according to the settings.
int threads_of(const Settings& settings);

// Memory limit per rank: memory_limit, or the memory of its device; for LOCAL ranks, their share of
// this machine's memory. 0: unknown.
double memory_per_rank(const Settings& settings, const cluster::Cluster& cluster);

// Threads per rank: as TRAIN would start them on this machine, else 1.
int workers_of(const Settings& settings, const cluster::Cluster& cluster);

// Whether ranks of this machine communicate while they compute: as set, or if that takes no
// processor from a worker.
bool overlaps(const Settings& settings, std::int64_t ranks, int workers);

// Costs of steps on the cluster, with the settings' transport and algorithms for LOCAL ranks.
exchange::CostsOn costs_of(const cluster::Cluster& cluster, const Settings& settings, int workers);

// Costs of steps on the cluster and how its ranks run them, with measurements of this machine if
// they are LOCAL. REQUIRES: the cluster outlives it.
search::Machine machine_of(const Settings& settings, const cluster::Cluster& cluster);

// A cluster of one of its devices, with mesh rank=1.
cluster::Cluster alone(const cluster::Cluster& cluster);

}  // namespace weft::planner
