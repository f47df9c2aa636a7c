// weft/base/machine.h -- what this machine has to offer.
#pragma once
#include <cstdint>

namespace weft {

// Bytes that can be taken without pushing others out, within this process's own limits; 0 when the
// system does not say.
std::int64_t available_memory();

// Processors that this process may run on.
int available_processors();

}  // namespace weft
