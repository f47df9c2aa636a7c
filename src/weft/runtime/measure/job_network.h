// weft/runtime/measure/job_network.h -- what the network between the hosts of a job carries, measured by its ranks in
// less than a second.
//
//   hosts        a: 0 2      b: 1 3
//   latency      0 ──▶ 1 ──▶ 0                  half of a round trip, to the farthest host
//   rate         0 ◀══▶ 1   2 ◀══▶ 3            all ranks at once, each with those of its place on other hosts:
//                                               as collectives along a mesh axis of hosts do
#pragma once
#include <memory>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/machine_ranks.h"

namespace weft::measure {

struct Network {
  double latency_seconds = 0;   // of a message
  double bytes_per_second = 0;  // each way, per rank, while all ranks send
};

// Collective over the job; every rank gets the same. REQUIRES: hosts.count > 1, of all ranks of the job
Result<Network> measure_network(const std::shared_ptr<transport::Job>& job, const transport::Hosts& hosts);

}  // namespace weft::measure
