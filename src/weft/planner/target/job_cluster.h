// weft/planner/target/job_cluster.h -- ON JOB: the cluster that the ranks of a launcher's job find.
//
//   ranks on hosts        mesh            ranks by mesh position
//   0 0 1 1               host=2, rank=2  0 1 2 3
//   0 1 0 1               host=2, rank=2  0 2 1 3     the same plan: what talks most is on one host
//   0 0 0                 rank=3          0 1 2       as LOCAL 3
//   0 0 0 1               rank=4          0 1 2 3     no mesh of hosts: every link is the network
#pragma once
#include "weft/base/result.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/language/catalog.h"
#include "weft/language/syntax.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

// Whether ON names the job: a cluster or a device of that name goes before it.
bool is_job(const language::Catalog& catalog, const language::syntax::Target& target);

// Collective over the job, whose network is measured when this is first asked, unless the settings say what it
// carries. Fails where no launcher started this process.
Result<Target> find_job(const language::Catalog& catalog, const language::syntax::Target& target,
                        const Settings& settings);

// The mesh of hosts that far apart.
cluster::Cluster cluster_of(const transport::Hosts& hosts, const measure::Network& network,
                            const cluster::Device& core);

}  // namespace weft::planner
