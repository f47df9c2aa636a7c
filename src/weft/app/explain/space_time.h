// weft/app/explain/space_time.h -- a chunk program as a drawing: ranks downwards, time to the right.
//
//   rank 0   [send 0]      [receive 1]
//                  \       /
//   rank 1          [rrcs 1]
//
// Every threadblock has a lane, every step a box coloured by its op, every message an arrow from the step
// that sends it to the one that takes it. Boxes stand where the timeline says; without one, at their
// depth: the number of steps that must have come before, one after another. A step that can never run
// (the program deadlocks) stands at the end in dashed red.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::explain {

struct StepTime {
  double begin = 0, end = 0;  // seconds
};

struct SpaceTimeOptions {
  std::int32_t most_ranks = 64;     // further ranks are left out, and the drawing says so
  std::int32_t most_steps = 12000;  // a drawing of more is refused
  // When each step ran, rank by rank, block by block, step by step; empty: by depth.
  std::span<const StepTime> timeline = {};
};

// REQUIRES: check_form(program) has found nothing (see check/check.h). Fails for a program with more
// steps than `most_steps` on the ranks that are drawn, and for a timeline of another length.
Result<std::string> draw_space_time(const collective::Program& program, const SpaceTimeOptions& options = {});

}  // namespace weft::explain
