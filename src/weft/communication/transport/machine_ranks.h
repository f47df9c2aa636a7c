// weft/communication/transport/machine_ranks.h -- which ranks share a machine: its cores, and its
// memory.
//
//   members   0    1    2    3    4         Member::host     a/1  a/1  b/7  a/1  a/2
//   of        0    0    1    0    2         host number: ranks with the same number can share memory
//   places    0    1    0    2    0         position among the ranks of that host
//
// Containers and network namespaces of one machine are separate hosts: they share cores, but no
// memory.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/communication/transport/job.h"

namespace weft::transport {

struct Hosts {
  std::vector<std::int32_t> of, places;  // by position in `members`
  std::int32_t count = 0;

  // Whether the members are on several hosts and at least two of them share one.
  bool is_mixed() const { return count > 1 && count < static_cast<std::int32_t>(of.size()); }

  // Positions grouped by host, in order within each: 0 1 3, 2, 4 in the diagram. The first stays
  // first.
  std::vector<std::int32_t> by_host() const;
};

// For all ranks of a job.
Hosts find_hosts(const Job& job);

// For `members` (job ranks). The same on every rank of the job.
Hosts find_hosts(const Job& job, std::span<const std::int32_t> members);

// The number of `members` that share this machine's cores, on any host.
std::int32_t ranks_on_this_machine(const Job& job, std::span<const std::int32_t> members);

}  // namespace weft::transport
