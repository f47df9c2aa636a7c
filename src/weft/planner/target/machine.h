// weft/planner/target/machine.h -- memory, workers and costs of a target.
#pragma once
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/exchange_costs.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// Threads on this machine, according to the settings.
int threads_of(const Settings& settings);

// Share of a device's memory that plans leave free where neither the settings nor the stack state it: for CUDA's
// context, NCCL's buffers and fragmentation.
constexpr double kMemoryReserve = 0.06;

// Memory of a rank's device; for LOCAL ranks, their share of this machine's memory. 0: unknown.
double device_memory(const cluster::Cluster& cluster);
// The share of it that plans leave free: the setting, else the stack's, else the default. None for LOCAL ranks, whose
// memory the system shares, and none if memory_limit is set.
double memory_reserve(const Settings& settings, const cluster::Cluster& cluster);
// Memory limit per rank: memory_limit, or what the device has besides the reserve. 0: unknown.
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

// Share of the step time within which plans count as equal, so that the simplest is chosen: as set,
// else half of the prediction's interval, but at most 3 %.
double simpler_within(const Settings& settings, const cluster::Cluster& cluster);

// A cluster of one of its devices, with mesh rank=1.
cluster::Cluster alone(const cluster::Cluster& cluster);

}  // namespace weft::planner
