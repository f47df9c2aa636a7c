// weft/program/tasks/step_parts.h -- what a rank did with the time of a step, from when its tasks ran.
//
//   computing  [product 1][product 2]......[update]      computing: any worker had a task that computes
//   moving     ..........[reduce 1 ....]...               exposed: a collective ran, and nothing else
//              c          c          e    i c             idle: neither
#pragma once
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::program {

struct StepParts {
  double computing = 0, exposed = 0, idle = 0;  // together the whole step, to the rank's last task
  double moving = 0;                            // collectives, hidden or not

  double seconds() const { return computing + exposed + idle; }
};

// Counted from where the timeline counts.
StepParts step_parts(const Program& program, const Timeline& timeline);

}  // namespace weft::program
