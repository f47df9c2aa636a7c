// weft/collectives/synthesis/step_search.h -- finds an algorithm within given steps, or refutes it.
//
// Easy instances are decided directly. Otherwise the search first looks for symmetric schedules,
// and for schedules with fewer steps, which can be split later: both give much smaller formulas. If
// neither succeeds, the full instance is decided. Effort is counted in solver conflicts and grows
// in rounds, so the same instance has the same answer.
//
// A reduction is the collective that it inverts, run backwards on the reversed network:
// reduce_scatter for all_gather, reduce for broadcast. An all_reduce is a reduce_scatter followed
// by an all_gather, with the steps and rounds divided between them in all possible ways. A
// refutation does not cover an all_reduce that interleaves the two.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"
#include "weft/collectives/synthesis/step_sat.h"
#include "weft/collectives/synthesis/step_schedule.h"

namespace weft::synthesis {

enum class StepVerdict : std::uint8_t { satisfiable, unsatisfiable, unknown };

struct StepAnswer {
  StepVerdict verdict = StepVerdict::unknown;
  std::optional<StepSchedule> combine, spread;  // arguments of step_moves()
  std::string why;                              // how it was found, what refutes it, or why it is unknown
  std::int64_t formulas = 0;                    // passed to the solver
};

// Searches on one network. The symmetries found are kept for the next instance.
class StepSearch {
 public:
  // The network must outlive this object.
  explicit StepSearch(const StepNetwork& network);
  ~StepSearch();

  // Unknown only if the clock expires, the instance takes too much memory, or the build has no
  // solver.
  Result<StepAnswer> answer(const StepQuestion& question, const StepClock& clock);

 private:
  class Side;
  StepAnswer answer_all_reduce(const StepQuestion& question, const StepClock& clock);

  std::unique_ptr<Side> forwards_, backwards_;
  std::int32_t devices_;
};

// Answers a single instance.
Result<StepAnswer> answer_steps(const StepNetwork& network, const StepQuestion& question,
                                const StepClock& clock);

// The algorithm found.
// REQUIRES: the answer to that question is satisfiable
collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepAnswer& answer);

}  // namespace weft::synthesis
