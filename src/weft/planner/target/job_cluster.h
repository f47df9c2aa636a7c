// weft/planner/target/job_cluster.h -- ON JOB: the cluster formed by the ranks of a launcher's job.
//
//   ranks on hosts        mesh            ranks by mesh position
//   0 0 1 1               host=2, rank=2  0 1 2 3
//   0 1 0 1               host=2, rank=2  0 2 1 3     the same plan: inner axes stay within a host
//   0 0 0                 rank=3          0 1 2       like LOCAL 3
//   0 0 0 1               rank=4          0 1 2 3     uneven hosts: every link is the network
#pragma once
#include "weft/base/result.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/language/catalog.h"
#include "weft/language/syntax.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

// Whether ON names the job. A cluster or device named JOB takes precedence.
bool is_job(const language::Catalog& catalog, const language::syntax::Target& target);

// Collective over the job. The first call measures the network, unless the settings give its
// bandwidth and latency. Fails if no launcher started this process.
Result<Target> find_job(const language::Catalog& catalog, const language::syntax::Target& target,
                        const Settings& settings);

// The cluster of these hosts with this network between them.
cluster::Cluster cluster_of(const transport::Hosts& hosts, const measure::Network& network,
                            const cluster::Device& core);

}  // namespace weft::planner
