// weft/collectives/one_sided/lower_one_sided.h -- threadblocks that send and receive become ones that put and signal.
//
//   send input[0]                       put     input[0] to scratch[4] of 1, nop, signal
//   receive_reduce_copy input[0]        wait, nop, reduce input[0] and scratch[4] to input[0]
//
// Every chunk of every message has a chunk of scratch of its own at the receiver, so that nobody waits for
// room and any program that check() passes stays right. A plan is run again and again: at its start a
// receiver tells its sender that the run before is over, or the next messages could come too early.
//
// Threadblocks of one rank that wait for each other have a semaphore for each pair. A wait for a step that
// was waited for already is left out; so a block's waits for another go up its steps, and the k-th release
// is for the k-th acquire.
#pragma once
#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

struct OneSidedOptions {
  // Ranks on different nodes go through network ports: rank r is on node r / ranks_per_node. 0: one node.
  std::int32_t ranks_per_node = 0;
};

// A program that runs either way becomes a plan in place. An error where the executor has no room: see
// check_limits().
// REQUIRES: check(program) has found nothing.
Result<OneSided> lower_one_sided(const Program& program, const OneSidedOptions& options = {});

}  // namespace weft::collective
