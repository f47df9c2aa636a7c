// weft/collectives/synthesis/step_search.h -- is there an algorithm of C chunks, S steps and R rounds? One, or a proof
// that there is none.
//
// What is easy is decided as it stands. Then a schedule with symmetries is looked for, and with few steps, which
// can be split later: both make tiny formulas of large questions. Where none of these has an answer, the whole
// question is decided. Effort is counted in the solver's conflicts and grows in turns, so the same question has
// the same answer.
//
// A collective that sums is the collective that it undoes, run backwards on the reversed network: reduce_scatter
// of all_gather, reduce of broadcast. An all_reduce is a reduce_scatter and then an all_gather, the steps and
// rounds shared out between them in all possible ways; that there is none says nothing about an all_reduce
// that mixes the two.
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
  std::optional<StepSchedule> combine, spread;  // as step_moves() takes them
  std::string why;            // in words: how it was found, what rules it out, or why it is unknown
  std::int64_t formulas = 0;  // that were given to the solver
};

// Questions about one network. What is found out about its symmetries is kept for the next question.
class StepSearch {
 public:
  // The network must outlive this.
  explicit StepSearch(const StepNetwork& network);
  ~StepSearch();

  // Unknown only once the clock is over, where the question takes too much memory, or in a build without a
  // solver.
  Result<StepAnswer> answer(const StepQuestion& question, const StepClock& clock);

 private:
  class Side;
  StepAnswer answer_all_reduce(const StepQuestion& question, const StepClock& clock);

  std::unique_ptr<Side> forwards_, backwards_;
  std::int32_t devices_;
};

// A single question.
Result<StepAnswer> answer_steps(const StepNetwork& network, const StepQuestion& question,
                                const StepClock& clock);

// The algorithm that was found.
// REQUIRES: the answer to that question is satisfiable
collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepAnswer& answer);

}  // namespace weft::synthesis
