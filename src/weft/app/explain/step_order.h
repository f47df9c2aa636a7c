// weft/app/explain/step_order.h -- dependencies between the steps of a chunk program.
//
//   rank 0   send            depth 0
//                \                        a step depends on the previous step of its threadblock, on the
//   rank 1        receive    depth 1      step it waits for, and on the sends whose messages it receives
//                 send       depth 2
//
// Assumes that connections hold any number of messages. This is for drawings; check() verifies
// programs.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::explain {

struct PlacedStep {
  std::int32_t rank = 0, block = 0, step = 0;
};

// Chunks sent from one step to another. A send of two chunks can feed two receives of one.
struct StepMessage {
  std::int32_t sender = 0, receiver = 0;  // indices into StepOrder::steps
  std::int32_t chunks = 1;
};

struct StepOrder {
  std::vector<PlacedStep> steps;  // ordered by rank, threadblock and step
  std::vector<StepMessage> messages;
  // The length of the longest chain of preceding steps; -1: the step can never run.
  std::vector<std::int32_t> depths;
};

// REQUIRES: check_form(program) finds nothing (see check/check.h).
StepOrder order_steps(const collective::Program& program);

}  // namespace weft::explain
