// weft/predict/cost/oversubscribed_costs.h -- task times in a step whose ranks outnumber the processors.
//
//   two processors   rank 0   [a ====][wait ........]     Ranks 2 and 3 get a processor when 0 and 1 wait.
//                    rank 1   [a ====][wait ........]     In wall-clock time, `a` took as long as if each
//                    rank 2   .......[a ====][wait ..]    rank had its own processor, and all the rest
//                    rank 3   .......[a ====][wait ..]    was waiting.
//
// The system schedules threads differently in each step and each plan, so wall-clock times of one
// plan say little about another. Two quantities stay the same: how much processor time a task had,
// and how long processors were idle because ranks waited:
//
//   a task that computes   its processor time, times the threads per processor
//   a collective           how long processors were idle in it
//
// These add up to the step.
#pragma once
#include <span>
#include <vector>

#include "weft/predict/cost/exchange_times.h"
#include "weft/program/tasks/timeline.h"

namespace weft::cost {

// costs[rank][step]: the same tasks with their begin times, each as long as its cost. Computing
// threads share `processors` evenly. REQUIRES: the arguments of record_exchanges(), and at least one
// processor
std::vector<std::vector<program::Timeline>> oversubscribed_costs(std::span<const RankSteps> ranks,
                                                                 const Concurrency& concurrency,
                                                                 int processors);

}  // namespace weft::cost
