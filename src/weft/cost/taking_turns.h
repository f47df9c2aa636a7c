// weft/cost/taking_turns.h -- what tasks cost a step whose ranks outnumber the processors.
//
//   two processors   rank 0   [a ====][wait ........]     ranks 2 and 3 get a processor when 0 and 1 wait: by
//                    rank 1   [a ====][wait ........]     the clock `a` took as long as if each rank had a
//                    rank 2   .......[a ====][wait ..]    processor of its own, and all the rest was waiting
//                    rank 3   .......[a ====][wait ..]
//
// How the system deals out turns differs from step to step and from plan to plan, so clock times of one plan
// say little of another. What does not differ is how much of a processor a task had, and how long processors
// stood idle because ranks waited:
//
//   a task that computes   what it had of a processor, times the threads for each processor
//   a collective           how long processors stood idle in it
//
// Together these are the step: of the one as many seconds as there was work, of the other what is left.
#pragma once
#include <span>
#include <vector>

#include "weft/cost/exchange_times.h"
#include "weft/program/timeline.h"

namespace weft::cost {

// costs[rank][step]: the same tasks, each as long as it costs the step; they begin when they began. Threads
// that compute share `processors` evenly. REQUIRES: as learn_exchanges(), and a processor at least
std::vector<std::vector<program::Timeline>> costs_of_turns(std::span<const RankSteps> ranks,
                                                           const Concurrency& concurrency, int processors);

}  // namespace weft::cost
