// weft/app/explain/space_time.h -- a space-time diagram of a chunk program: ranks down, time to the right.
//
//   rank 0   [send 0]      [receive 1]
//                  \       /
//   rank 1          [rrcs 1]
//
// Every threadblock has a lane, every step a box coloured by its op, and every message an arrow
// from its send to its receive. The timeline determines the positions of boxes. Without one, a box
// is placed by its depth: the longest chain of steps that must precede it. A step that can never
// run (the program deadlocks) is drawn at the end in dashed red.
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
  std::int32_t most_ranks = 64;     // further ranks are omitted, with a note
  std::int32_t most_steps = 12000;  // fails if there are more
  // When each step ran, ordered by rank, threadblock and step; empty: place by depth.
  std::span<const StepTime> timeline = {};
};

// REQUIRES: check_form(program) finds nothing (see check/check.h). Fails if the drawn ranks have
// more than `most_steps` steps, or if the timeline has a different length.
Result<std::string> draw_space_time(const collective::Program& program, const SpaceTimeOptions& options = {});

}  // namespace weft::explain
