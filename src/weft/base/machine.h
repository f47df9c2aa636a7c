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

// The one that the calling thread runs on; -1 where the system does not say.
int current_processor();
// How often the calling thread has given or lost its processor to another so far. Not counted: what the
// machine below takes of a virtual one.
std::int64_t context_switches();
// Those that the calling thread may run on, in order.
std::vector<int> allowed_processors();
// Takes the calling thread there and leaves it free to go anywhere it may: nobody is bound to anything.
void move_to_processor(int processor);

}  // namespace weft
