// weft/transport/machine_ranks.h -- how many ranks share this machine's cores.
#pragma once
#include <cstdint>
#include <span>

#include "weft/transport/job.h"

namespace weft::transport {

// Of `members` (job ranks). Ranks in different containers or network namespaces of one machine count, though
// they cannot share memory: they share its cores.
std::int32_t ranks_on_this_machine(const Job& job, std::span<const std::int32_t> members);

}  // namespace weft::transport
