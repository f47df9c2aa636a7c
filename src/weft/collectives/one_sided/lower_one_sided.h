// weft/collectives/one_sided/lower_one_sided.h -- lowers send and receive to put, signal and wait.
//
//   send input[0]                       put     input[0] to scratch[4] of 1, nop, signal
//   receive_reduce_copy input[0]        wait, nop, reduce input[0] and scratch[4] to input[0]
//
// Every chunk of every message has its own chunk of scratch at the receiver, so no send waits for
// room and any program that passes check() stays correct. A plan runs repeatedly. At its start a
// receiver signals its sender that the previous run is over; otherwise the next messages could
// arrive too early.
//
// Each pair of threadblocks of a rank that wait for each other has a semaphore. A wait for a step
// that was already waited for is omitted. So a block waits for another block's steps in ascending
// order, and the k-th release matches the k-th acquire.
#pragma once
#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

struct OneSidedOptions {
  // Ranks on different nodes use network ports: rank r is on node r / ranks_per_node. 0: one node.
  std::int32_t ranks_per_node = 0;
};

// A program for either placement becomes an in-place plan. An error if it exceeds the executor's
// limits: see check_limits().
// REQUIRES: check(program) found nothing.
Result<OneSided> lower_one_sided(const Program& program, const OneSidedOptions& options = {});

}  // namespace weft::collective
