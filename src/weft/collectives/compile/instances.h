// weft/collectives/compile/instances.h -- replicates a program over parts of every chunk.
//
//   2 instances         chunk 0     chunk 1
//                       0a | 0b     1a | 1b         instance a moves 0a and 1a on its own channels and
//   new chunks          0    1      2    3          blocks, instance b moves 0b and 1b
//
// Chunk c of instance i of k is the new chunk c*k + i, in every buffer. The chunks of one instance
// are not contiguous, so a step of count n becomes n steps.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

// Channel c of instance i becomes channel c*k + i, block b block b*k + i. Fails if the number of
// chunks overflows, and for a barrier, which has only one chunk.
Result<Program> replicate(const Program& program, std::int32_t instances);

}  // namespace weft::collective
