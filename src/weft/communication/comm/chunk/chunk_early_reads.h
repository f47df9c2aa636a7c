// weft/communication/comm/chunk/chunk_early_reads.h -- which chunks of its input a rank reads
// before they are overwritten.
//
//   all_reduce among 2 ranks, in place, rank 0        input[0]   input[1]
//     send input[1]                                              early: what the caller gave
//     receive_reduce_copy input[0]                    early, then written
//     send input[0]                                   late: what the step before wrote
//     receive input[1]                                           written
//
// A program that runs on a copy of the input needs the copy only for chunks that are written; all
// others are read from the caller's buffer. One run of the program finds these reads. They are the
// same in every run, since a read and a write of one chunk in either order would be a race.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::comm {

struct EarlyReads {
  // For each chunk that the steps of the rank move, numbered as in classify(): whether its source,
  // and the target that a `reduce` adds to, are input chunks that no step has written yet.
  std::vector<bool> sources, targets;
  std::vector<bool> written;  // for each input chunk: whether any step writes its location
};

// Empty if the program is too long for a trial run, or custom. REQUIRES: check(program) has found
// nothing, and the program supports `placement`.
std::optional<EarlyReads> find_early_reads(const collective::Program& program, std::int32_t rank,
                                           collective::Placement placement);

}  // namespace weft::comm
