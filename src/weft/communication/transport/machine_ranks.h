// weft/communication/transport/machine_ranks.h -- which ranks share a machine: its cores, and its memory.
//
//   members   0    1    2    3    4         Member::host     a/1  a/1  b/7  a/1  a/2
//   of        0    0    1    0    2         a host a number: who has the same number can share memory
//   places    0    1    0    2    0         and this place among those who do
//
// Containers and network namespaces of one machine are hosts of their own: they share cores, but no memory.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/communication/transport/job.h"

namespace weft::transport {

struct Hosts {
  std::vector<std::int32_t> of, places;  // by position in `members`
  std::int32_t count = 0;

  // Whether some, but not all, of the members have others on their host.
  bool is_mixed() const { return count > 1 && count < static_cast<std::int32_t>(of.size()); }

  // Positions host by host, in order within each: 0 1 3, 2, 4 of the picture. The first stays first.
  std::vector<std::int32_t> by_host() const;
};

// Of all ranks of a job.
Hosts find_hosts(const Job& job);

// Of `members` (job ranks). The same on every rank of the job.
Hosts find_hosts(const Job& job, std::span<const std::int32_t> members);

// Of `members`, those who want this machine's cores, on whatever host.
std::int32_t ranks_on_this_machine(const Job& job, std::span<const std::int32_t> members);

}  // namespace weft::transport
