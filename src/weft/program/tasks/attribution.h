// weft/program/tasks/attribution.h -- computes the time of each plan node from measured task times.
//
//   tasks      t0 -- u0 --   t1 -- u0 --   t2 - u1 -     A unit's time is the sum of its tasks' times,
//   unit u0    add, relu, mul                            on whichever workers. It is divided among its
//   estimates   1     1    2                             nodes in proportion to the caller's estimates.
//   shares     25 %  25 %  50 %
//
// With the estimates that EXPLAIN prints, all nodes of a unit have the same ratio of measured to
// estimated time: the unit's. A combine counts for the node whose sum it finishes, a copy for the
// node whose result it moves. Copies of values that no node computes, such as inputs, count for no
// node.
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

// Times of one step. Node times are worker time, so two workers have two seconds per second.
struct Attribution {
  std::vector<double> node_seconds;  // by node of the plan; 0 for nodes without tasks
  double other_seconds = 0;          // of tasks that belong to no node
  double busy_seconds = 0;           // sum of both
  double step_seconds = 0;           // from the first begin to the last end
  int workers = 1;
  std::size_t steps = 0;  // number of steps measured

  // The fraction of worker time filled by tasks, 0 to 1.
  double busy() const;
};

// Uses the median over the timelines for each task and for the whole step. Estimates are by node of
// the plan, one per node. A unit whose estimates are all zero is divided equally.
Attribution attribute(const Program& program, std::span<const Timeline> timelines,
                      std::span<const double> estimates, int workers);

}  // namespace weft::program
