// weft/planner/target/job_hosts.h -- hosts and network of a launcher's job.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::planner {

struct JobHosts {
  std::vector<std::vector<std::int32_t>> ranks;      // by host; in the order of mesh positions
  double latency_seconds = 0, bytes_per_second = 0;  // of the network between hosts
  bool measured = false;                             // else given by the settings
};

}  // namespace weft::planner
