// weft/collectives/synthesis/step_schedule.h -- a schedule of chunks over edges in steps.
//
//   rounds  1 2                 step 0   chunk 0 over edge 0, chunk 1 over edge 2
//                               step 1   chunk 0 over edge 3, chunk 1 over edge 3
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"

namespace weft::synthesis {

struct StepSend {
  std::int32_t step = 0, edge = 0, chunk = 0;

  friend auto operator<=>(const StepSend&, const StepSend&) = default;
};

struct StepSchedule {
  std::vector<std::int32_t> rounds;  // per step
  std::vector<StepSend> sends;       // sorted

  friend bool operator==(const StepSchedule&, const StepSchedule&) = default;
};

// The first fault: a device sends a chunk that it lacks, exceeds a limit, or never receives a
// chunk. Independent of how schedules are found.
std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       const StepSchedule& schedule);

// Whether a step can always be split: every edge has its own limit, with an integer capacity per
// round.
bool can_split_steps(const StepNetwork& network);

// The same sends in more steps, up to one per round.
// REQUIRES: can_split_steps(network), no fault; schedule.rounds.size() <= steps <= the sum of its
// rounds
StepSchedule split_steps(const StepNetwork& network, StepSchedule schedule, std::int32_t steps);

// The moves of a schedule. An all_reduce runs `combine` backwards and then `spread`. Other
// collectives that run backwards have only `combine`, on the reversed network; the rest have only
// `spread`. The moves are in place, except for all_to_all, gather and scatter, whose chunks go
// through scratch.
// REQUIRES: no fault in either
collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepSchedule* combine, const StepSchedule* spread);

}  // namespace weft::synthesis
