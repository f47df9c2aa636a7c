// weft/base/machine.h -- the processors and memory of this machine.
#pragma once
#include <cstdint>
#include <vector>

namespace weft {

// Bytes available without swapping or evicting, within this process's own limits; 0 if the system
// does not report it.
std::int64_t available_memory();

// Bytes of the machine, or of the container if it has fewer.
std::int64_t total_memory();

// The number of processors that this process may run on, limited by a container's CPU quota.
int available_processors();

// The processors that the calling thread may run on, in order.
std::vector<int> allowed_processors();

}  // namespace weft
