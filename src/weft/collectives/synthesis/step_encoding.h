// weft/collectives/synthesis/step_encoding.h -- an instance of step-optimal synthesis as a formula.
//
//   has(c, n, s)    chunk c is on device n after s steps. False before c can have reached n; not encoded
//                   once c would be too late for every device behind n
//   send(c, e, s)   c crosses e in step s, and thereby reaches the end of e for the first time
//   longer(s, r)    step s takes at least r rounds; all steps together take at most `rounds`
//
//   c reaches n in step s         <=>  exactly one send of c to n in s, from a device that has it after s - 1
//   k sends within a limit in s   =>  longer(s, the rounds that k chunks need)
//
// Symmetry breaking: copies with the same source and targets are ordered. Under a group of
// symmetries, a chunk and its images share their variables.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"
#include "weft/collectives/synthesis/step_sat.h"
#include "weft/collectives/synthesis/step_schedule.h"
#include "weft/collectives/synthesis/step_symmetry.h"

namespace weft::synthesis {

class StepEncoding {
 public:
  // The network and the problem must outlive this object. When the clock expires, the encoding is
  // left incomplete, and solve() returns unknown.
  StepEncoding(const StepNetwork& network, const StepProblem& problem, std::int32_t steps,
               std::int32_t rounds, const StepGroup& group, const StepClock& clock);

  // Estimates the number of clauses for a group of that order; rarely too low.
  static double estimate(const StepNetwork& network, const StepProblem& problem, std::int32_t steps,
                         std::int32_t rounds, std::size_t order);

  // False if the group does not act freely on the chunks: nothing is encoded.
  bool fits_group() const { return fits_group_; }
  // False if it would take too much memory: nothing is encoded.
  bool fits_memory() const { return fits_memory_; }

  StepFormula::Outcome solve(std::int64_t conflicts, const StepClock& clock) {
    return is_whole_ ? formula_.solve(conflicts, clock) : StepFormula::Outcome::unknown;
  }
  // REQUIRES: the last solve() returned satisfied
  StepSchedule schedule() const;

  std::int64_t variables() const { return formula_.variables(); }
  std::int64_t clauses() const { return formula_.clauses(); }

 private:
  struct Window {
    std::int32_t earliest = 0, latest = -1;  // first step when it can arrive, last when it may
  };

  bool act_on_chunks(const StepGroup& group);
  void find_windows(std::int32_t chunk);
  void encode_rounds();
  void encode_chunk(std::int32_t chunk);
  void order_copies(std::int32_t first, std::int32_t second);
  void encode_limit(const StepLimit& limit, std::int32_t step);
  std::int64_t slack(const StepLimit& limit) const;

  std::size_t slot(std::int32_t chunk, std::size_t of, std::size_t count, std::int32_t step) const;
  int has(std::int32_t chunk, std::int32_t device, std::int32_t step) const;
  int send(std::int32_t chunk, std::int32_t edge, std::int32_t step) const;
  int longer(std::int32_t step, std::int64_t rounds) const;
  const Window& window(std::int32_t chunk, std::int32_t device) const;

  const StepNetwork& network_;
  const StepProblem& problem_;
  std::int32_t steps_, rounds_;
  bool fits_group_ = false, fits_memory_ = true, is_whole_ = false;
  std::vector<std::vector<std::int32_t>> distances_;
  std::vector<std::vector<std::int32_t>> entering_;  // incoming edges per device

  // A chunk's representative, its index among those, and the symmetry that maps the chunk to it.
  struct Image {
    std::int32_t chunk = -1, place = -1;
    const StepSymmetry* by = nullptr;
  };
  StepGroup group_;
  std::vector<Image> images_;
  std::vector<std::int32_t> representatives_;
  bool copies_are_permuted_ = false;

  StepFormula formula_;
  std::vector<Window> windows_;
  std::vector<int> has_, send_;           // kFalse if not encoded
  std::vector<std::vector<int>> longer_;  // [step][rounds - 2]
};

}  // namespace weft::synthesis
