// weft/program/tasks/step_parts.h -- compute, exposed communication and idle time of a step.
//
//   computing  [product 1][product 2]......[update]      computing: some worker ran a compute task
//   moving     ..........[reduce 1 ....]...               exposed: only a collective ran
//               c          c          e    i c            idle: neither
#pragma once
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::program {

struct StepParts {
  double computing = 0, exposed = 0, idle = 0;  // sum to the whole step, up to the rank's last task
  double moving = 0;                            // collectives, hidden or not

  double seconds() const { return computing + exposed + idle; }
};

// Times start at the begin of the timeline.
StepParts step_parts(const Program& program, const Timeline& timeline);

}  // namespace weft::program
