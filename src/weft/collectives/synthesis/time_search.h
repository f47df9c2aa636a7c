// weft/collectives/synthesis/time_search.h -- a collective of a given size, done as early as a search finds.
//
//   turn 1   greedy, one chunk a block        10.9 us     bound 8.5 us
//   turn 2   two chunks a block                9.8 us
//   ...      other keys, then the best keys changed a little, while time is left
//
// Of long messages the trees of a forest, where there is one, are timed as well (tree_schedule.h).
// Every turn is a whole schedule, so that there is an answer whenever the search is stopped. With the same
// seed and the same number of turns it finds the same. An all_reduce is a reduce_scatter and then an
// all_gather; what sums is searched for backwards, see step_problem.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/time_turn.h"

namespace weft::synthesis {

struct TimeQuestion {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t root = 0;
  double bytes = 0;         // of the collective's message, as nccl-tests counts them
  std::int32_t chunks = 0;  // that a block is cut into; 0: what is best
};

struct TimeEffort {
  std::int32_t most_turns = 64;
  std::uint64_t seed = 1;
  const Forest* forest = nullptr;  // of the same collective on the same wires
  // Called after every turn: turns, best finish so far, bound.
  std::function<void(std::int32_t, double, double)> progress = {};
};

struct TimeAnswer {
  StepQuestion question;  // its chunks, as step_moves() counts them
  double chunk_bytes = 0;
  std::optional<TimeSchedule> combine,
      spread;         // combine is a schedule of the reversed network, run backwards
  double finish = 0;  // seconds, of both together
  double bound = 0;   // before which no schedule of whatever chunks is done
  std::int32_t turns = 0;
  std::int32_t tree_pieces = 0;  // the schedule is that of the forest's trees in so many pieces; 0: it is not
  bool stopped = false;          // by the clock

  // Above the bound, as a part of it.
  double gap() const { return bound > 0 ? finish / bound - 1 : 0; }
};

// Fails for what is no collective of these devices, and where not one turn was done in time.
Result<TimeAnswer> search_in_time(const StepNetwork& network, const TimeQuestion& question,
                                  const TimeEffort& effort, const StepClock& clock);

collective::Moves time_moves(const StepNetwork& network, const TimeAnswer& answer);

}  // namespace weft::synthesis
