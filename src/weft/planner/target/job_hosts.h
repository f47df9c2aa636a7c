// weft/planner/target/job_hosts.h -- where the ranks of a launcher's job are, and the network between their hosts.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::planner {

struct JobHosts {
  std::vector<std::vector<std::int32_t>> ranks;      // of each host; the mesh is laid over them in this order
  double latency_seconds = 0, bytes_per_second = 0;  // of the network between them
  bool measured = false;                             // rather than given
};

}  // namespace weft::planner
