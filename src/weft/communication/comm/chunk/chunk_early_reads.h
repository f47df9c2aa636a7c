// weft/communication/comm/chunk/chunk_early_reads.h -- what a rank reads of its input before anything is written there.
//
//   all_reduce among 2 ranks, in place, rank 0        input[0]   input[1]
//     send input[1]                                              early: what the caller gave
//     receive_reduce_copy input[0]                    early, then written
//     send input[0]                                   late: what the step before wrote
//     receive input[1]                                           written
//
// A program that runs on a copy of the input needs the copy only for what nobody writes: everything else is
// read once from where the caller has it. One run of the program tells which reads those are; it is the
// same in every run, since a read and a write of one chunk that may come in either order are a race.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::comm {

struct EarlyReads {
  // Of each chunk that the steps of the rank move, numbered as in classify(): whether its source, and the
  // target that a `reduce` adds to, are chunks of the input that no step has written yet.
  std::vector<bool> sources, targets;
  std::vector<bool> written;  // of each chunk of the input: whether any step writes where it lies
};

// None for a program that is too long to be run for this. REQUIRES: check(program) has found nothing, and
// `placement` is one.
std::optional<EarlyReads> find_early_reads(const collective::Program& program, std::int32_t rank,
                                           collective::Placement placement);

}  // namespace weft::comm
