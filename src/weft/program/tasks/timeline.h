// weft/program/tasks/timeline.h -- when each task of a program ran, or is predicted to run.
//
// The simulator predicts a timeline, the executor measures one; EXPLAIN ANALYZE compares them.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::program {

struct TaskTime {
  double begin = 0, end = 0;  // seconds since the step began
  int worker = 0;
};

struct Timeline {
  std::vector<TaskTime> tasks;  // parallel to the program's tasks
  double seconds = 0;           // from the first begin to the last end
};

}  // namespace weft::program
