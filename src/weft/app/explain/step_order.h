// weft/app/explain/step_order.h -- which step of a chunk program must come before which.
//
//   rank 0   send            depth 0
//                \                        a step comes after the one before it in its block, after the one
//   rank 1        receive    depth 1      it waits for, and after the sends whose messages it takes
//                 send       depth 2
//
// Connections are taken to hold any number of messages: this is for pictures; check() judges programs.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::explain {

struct PlacedStep {
  std::int32_t rank = 0, block = 0, step = 0;
};

// Chunks that went from one step to another. A send of two chunks may feed two receives of one.
struct StepMessage {
  std::int32_t sender = 0, receiver = 0;  // of StepOrder::steps
  std::int32_t chunks = 1;
};

struct StepOrder {
  std::vector<PlacedStep> steps;  // rank by rank, block by block, step by step
  std::vector<StepMessage> messages;
  // The number of steps that must have come before, one after another; -1: it can never run.
  std::vector<std::int32_t> depths;
};

// REQUIRES: check_form(program) has found nothing (see check/check.h).
StepOrder order_steps(const collective::Program& program);

}  // namespace weft::explain
