// weft/collectives/synthesis/step_problem.h -- the question of step-optimal synthesis: which chunks start where and
// must come where, in how many steps and rounds.
//
//   chunks  how each device's block is cut, as SCCL counts: of all_reduce and all_to_all the whole message of
//           a device, so a multiple of the devices; of broadcast and reduce the root's message; of the others
//           the block that a device has or wants
//   steps   every chunk crosses at most one edge in a step
//   rounds  of all steps together: a step of r rounds lets capacity * r chunks pass a limit
//
// Where every edge has a limit of its own, a schedule that fits fewer steps fits more of them too, up to one a
// round: what passes in one step of r rounds can pass in r steps.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::synthesis {

struct StepQuestion {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t root = 0;
  std::int32_t chunks = 1, steps = 1, rounds = 1;

  friend bool operator==(const StepQuestion&, const StepQuestion&) = default;
};

struct StepChunk {
  std::int32_t source = 0;
  std::vector<std::int32_t> targets;  // sorted, without the source; none: nobody else wants it
};

// Chunk `k * copies + c` is copy c of kind k: copies start and end alike, so they may change places.
struct StepProblem {
  std::vector<StepChunk> chunks;
  std::int32_t copies = 1;
};

// More moves of a chunk across an edge in a step are not considered: the formula would not fit.
inline constexpr std::int64_t kMostStepMoves = 20'000'000;

// Succeeds iff the collective is one that can be asked for and the numbers make sense on so many devices.
Status check_question(const StepQuestion& question, std::int32_t devices);

// Collectives that sum are done backwards: reduce_scatter as all_gather, reduce as broadcast.
bool runs_backwards(collective::Kind kind);

// What must be distributed: for a collective that runs backwards on the reversed network; all_reduce is two
// of these, see step_search.h.
// REQUIRES: check_question(question, devices).ok()
StepProblem step_problem(const StepQuestion& question, std::int32_t devices);

// The same in the words of a chunk program, whose blocks are cut in `chunks`.
collective::Collective step_collective(const StepQuestion& question, std::int32_t devices);

}  // namespace weft::synthesis
