// weft/collectives/synthesis/step_problem.h -- an instance of step-optimal synthesis.
//
// It says which chunks start where and must reach which devices, in how many steps and rounds.
//
//   chunks  how each device's block is cut, as in SCCL: for all_reduce and all_to_all the whole message of
//           a device, so a multiple of the devices; for broadcast and reduce the root's message; for the
//           others the block that a device has or wants
//   steps   every chunk crosses at most one edge per step
//   rounds  over all steps: a step of r rounds lets capacity * r chunks pass a limit
//
// If every edge has its own limit, a schedule for fewer steps also works for more steps, up to one
// per round: what passes in one step of r rounds can pass in r steps.
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
  std::vector<std::int32_t> targets;  // sorted, without the source; empty: no other device wants it
};

// Chunk `k * copies + c` is copy c of kind k. Copies have the same source and targets and are
// interchangeable.
struct StepProblem {
  std::vector<StepChunk> chunks;
  std::int32_t copies = 1;
};

// Larger instances (chunks times devices times steps) are rejected: the formula would not fit.
inline constexpr std::int64_t kMostStepMoves = 20'000'000;

// Succeeds iff the collective is supported and the numbers are valid for that many devices.
Status check_question(const StepQuestion& question, std::int32_t devices);

// Reductions run backwards: reduce_scatter as all_gather, reduce as broadcast.
bool runs_backwards(collective::Kind kind);

// The chunks to distribute: on the reversed network if the collective runs backwards. all_reduce is
// two such problems, see step_search.h.
// REQUIRES: check_question(question, devices).ok()
StepProblem step_problem(const StepQuestion& question, std::int32_t devices);

// The same as the collective of a chunk program, whose blocks have `chunks` chunks.
collective::Collective step_collective(const StepQuestion& question, std::int32_t devices);

}  // namespace weft::synthesis
