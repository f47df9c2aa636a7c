// weft/program/tasks/attribution.h -- from when tasks ran to how long each node of the plan took.
//
//   tasks      t0 -- u0 --   t1 -- u0 --   t2 - u1 -     A unit's time is the sum of its tasks' times,
//   unit u0    add, relu, mul                            whichever workers they ran on. Its nodes share
//   estimates   1     1    2                             it in proportion to the caller's estimates.
//   shares     25 %  25 %  50 %
//
// With the estimates that EXPLAIN prints, all nodes of a unit come out at one ratio to them: the unit's,
// which is what was measured. A combine belongs to the node whose sum it finishes, a copy to the node
// whose result it moves; copies of what no node computes, such as an input, belong to nobody.
//
//   rank.step(timelines[0]); rank.step(timelines[1]); ...
//   Attribution found = attribute(rank.program(), timelines, estimates, rank.workers());
//   found.node_seconds[node.value]
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::program {

// Times of one step. Those of nodes are workers' time, so two workers have two seconds in a second.
struct Attribution {
  std::vector<double> node_seconds;  // by node of the plan; 0 for what took none of its own
  double other_seconds = 0;          // what belongs to no node
  double busy_seconds = 0;           // both together
  double step_seconds = 0;           // from the first begin to the last end
  int workers = 1;
  std::size_t steps = 0;  // how many were measured

  // The part of the workers' time that tasks filled, 0 to 1.
  double busy() const;
};

// Of several timelines each task counts with its median, and so does the whole step. Estimates are by
// node of the plan, as long as it has nodes; a unit whose estimates are all zero is shared equally.
Attribution attribute(const Program& program, std::span<const Timeline> timelines,
                      std::span<const double> estimates, int workers);

}  // namespace weft::program
