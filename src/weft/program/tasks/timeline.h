// weft/program/tasks/timeline.h -- when each task of a program ran, or would run.
//
// The simulator predicts one, the executor measures one; EXPLAIN ANALYZE lays them side by side.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::program {

struct TaskTime {
  double begin = 0, end = 0;  // seconds since the step began
  int worker = 0;
};

struct Timeline {
  std::vector<TaskTime> tasks;  // as the program's
  double seconds = 0;           // from the first begin to the last end
};

}  // namespace weft::program
