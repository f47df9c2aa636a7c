// weft/runtime/measure/job_network.h -- measures the network between a job's hosts in under a second.
//
//   hosts        a: 0 2      b: 1 3
//   latency      0 ──▶ 1 ──▶ 0                  half of a round trip, to the farthest host
//   rate         0 ◀══▶ 1   2 ◀══▶ 3            all ranks at once, each with those at its position on other
//                                               hosts, like collectives along a mesh axis of hosts
#pragma once
#include <memory>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/machine_ranks.h"

namespace weft::measure {

struct Network {
  double latency_seconds = 0;   // per message
  double bytes_per_second = 0;  // per rank and direction, while all ranks send
};

// Collective over the job; all ranks return the same. REQUIRES: hosts.count > 1, the same on all
// ranks.
Result<Network> measure_network(const std::shared_ptr<transport::Job>& job, const transport::Hosts& hosts);

}  // namespace weft::measure
