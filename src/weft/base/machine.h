// weft/base/machine.h -- what this machine has to offer.
#pragma once
#include <cstdint>
#include <vector>

namespace weft {

// Bytes that can be taken without pushing others out, within this process's own limits; 0 when the
// system does not say.
std::int64_t available_memory();

// Bytes of the machine, or of the container where that has fewer.
std::int64_t total_memory();

// Processors that this process may run on and has the time of: a container may have a quota.
int available_processors();

// Those that the calling thread may run on, in order.
std::vector<int> allowed_processors();

}  // namespace weft
