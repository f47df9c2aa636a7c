// weft/synthesis/time_schedule.h -- a collective of a given size, done as early as a greedy search finds.
//
//   edge 0->1  |=chunk 0=|=chunk 1=|          a chunk takes its bytes over the rate of every limit of its edge;
//   edge 1->2  |         . |=chunk 0=|        it is there once it has passed and the edge's latency is over
//
// Time goes forward from event to event. Whenever an edge is free, it takes the chunk with the farthest way to
// go from there among those that its end needs or passes on as early as anybody can. The choice among equals
// is by chance, and the search begins again until its clock is over; the best is kept. With the same seed and
// the same number of turns it finds the same.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/synthesis/step_network.h"
#include "weft/synthesis/step_problem.h"
#include "weft/synthesis/step_sat.h"
#include "weft/synthesis/step_schedule.h"

namespace weft::synthesis {

struct TimeSend {
  double start = 0, arrives = 0;  // seconds
  std::int32_t edge = 0, chunk = 0;

  friend auto operator<=>(const TimeSend&, const TimeSend&) = default;
};

struct TimeSchedule {
  std::vector<TimeSend> sends;  // sorted
  double finish = 0;            // when the last chunk is there
  double bound = 0;             // before which no schedule of these chunks is done
  std::int32_t turns = 0;

  // Above the bound, as a part of it.
  double gap() const { return bound > 0 ? finish / bound - 1 : 0; }
};

struct TimeEffort {
  std::int32_t most_turns = 16;
  std::uint64_t seed = 1;
};

// REQUIRES: chunk_bytes > 0; network.latency has one entry an edge
TimeSchedule schedule_in_time(const StepNetwork& network, const StepProblem& problem, double chunk_bytes,
                              const TimeEffort& effort, const StepClock& clock);

// No schedule is done earlier: the longest way of a chunk alone, and the narrowest cut.
double time_bound(const StepNetwork& network, const StepProblem& problem, double chunk_bytes);

// The first thing wrong with it; knows nothing of how it was found.
std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       double chunk_bytes, const TimeSchedule& schedule);

// The sends one after another, as step_moves() takes them.
StepSchedule in_order(const TimeSchedule& schedule);

}  // namespace weft::synthesis
