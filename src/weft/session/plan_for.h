// weft/session/plan_for.h -- the plan of a model for a cluster: what settings, hints and statistics lead to.
//
// Included by the files of session/ only.
#pragma once
#include "weft/base/result.h"
#include "weft/cluster/cluster.h"
#include "weft/distribute/distribute.h"
#include "weft/plan/graph.h"
#include "weft/search/choose_distribution.h"
#include "weft/session/state.h"

namespace weft::session {

// What a rank of the cluster may take: memory_limit, or what its device has; of LOCAL ranks their part of
// this machine's memory. 0: no limit is known.
double memory_of_a_rank(const Settings& settings, const cluster::Cluster& cluster);

// Threads of a rank: of one on this machine as TRAIN would start it, else 1.
int workers_of(const Settings& settings, const cluster::Cluster& cluster);

// How the plan is best spread over the cluster, or as the setting `distribution` says. Alternatives are
// looked at where `compare`.
Result<search::DistributionChoice> plan_for(const Session::State& state, const Settings& settings,
                                            const plan::Graph& graph, const distribute::Phases& phases,
                                            const cluster::Cluster& cluster, bool compare);

}  // namespace weft::session
