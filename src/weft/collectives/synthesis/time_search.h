// weft/collectives/synthesis/time_search.h -- searches for the schedule that finishes earliest.
//
//   turn 1   greedy, one chunk per block      10.9 us     bound 8.5 us
//   turn 2   two chunks per block              9.8 us
//   ...      other keys, then small changes to the best keys, while time is left
//
// The collective has a given size. For long messages the trees of a forest, if given, are timed as
// well (tree_schedule.h). Every turn (iteration) builds a complete schedule, so there is an answer
// whenever the search is stopped. The same seed and number of turns give the same result. An
// all_reduce is a reduce_scatter followed by an all_gather. Reductions are searched backwards, see
// step_problem.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/greedy_schedule.h"

namespace weft::synthesis {

struct TimeQuestion {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t root = 0;
  double bytes = 0;         // of the message, as nccl-tests counts them
  std::int32_t chunks = 0;  // per block; 0: chosen by the search
};

struct TimeEffort {
  std::int32_t most_turns = 64;
  std::uint64_t seed = 1;
  const Forest* forest = nullptr;  // for the same collective and topology
  // Called after every turn with: turns, best finish so far, bound.
  std::function<void(std::int32_t, double, double)> progress = {};
};

struct TimeAnswer {
  StepQuestion question;  // with the chunks of step_moves()
  double chunk_bytes = 0;
  std::optional<TimeSchedule> combine,
      spread;         // combine is a schedule of the reversed network, run backwards
  double finish = 0;  // seconds, of both in sequence
  double bound = 0;   // lower bound on the finish, for any chunks
  std::int32_t turns = 0;
  std::int32_t tree_pieces = 0;  // the schedule uses the forest's trees in this many segments; 0: no trees
  bool stopped = false;          // by the clock

  // The excess over the bound, relative to the bound.
  double gap() const { return bound > 0 ? finish / bound - 1 : 0; }
};

// Fails if the devices cannot do the collective, and if no schedule was found in time.
Result<TimeAnswer> search_in_time(const StepNetwork& network, const TimeQuestion& question,
                                  const TimeEffort& effort, const StepClock& clock);

collective::Moves time_moves(const StepNetwork& network, const TimeAnswer& answer);

}  // namespace weft::synthesis
