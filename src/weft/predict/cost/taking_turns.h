// weft/predict/cost/taking_turns.h -- what tasks cost a step whose ranks outnumber the processors.
//
//   two processors   rank 0   [a ====][wait ........]     ranks 2 and 3 get a processor when 0 and 1 wait: by
//                    rank 1   [a ====][wait ........]     the clock `a` took as long as if each rank had a
//                    rank 2   .......[a ====][wait ..]    processor of its own, and all the rest was waiting
//                    rank 3   .......[a ====][wait ..]
//
// The system gives out turns differently in each step and each plan, so clock times of one plan say little of
// another. Two things stay the same: how much processor time a task had, and how long processors were idle
// because ranks waited:
//
//   a task that computes   its processor time, times the threads for each processor
//   a collective           how long processors were idle in it
//
// Together these are the step.
#pragma once
#include <span>
#include <vector>

#include "weft/predict/cost/exchange_times.h"
#include "weft/program/tasks/timeline.h"

namespace weft::cost {

// costs[rank][step]: the same tasks, each as long as it costs the step; they begin when they began. Threads
// that compute share `processors` evenly. REQUIRES: as learn_exchanges(), and a processor at least
std::vector<std::vector<program::Timeline>> costs_of_turns(std::span<const RankSteps> ranks,
                                                           const Concurrency& concurrency, int processors);

}  // namespace weft::cost
