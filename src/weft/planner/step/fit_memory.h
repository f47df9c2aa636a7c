// weft/planner/step/fit_memory.h -- fit TRAIN into memory_limit: keep, recompute or spill.
//
//   keep everything            fits?
//   recompute selective        what frees the most bytes for its work
//   and some layers            as few as fit
//   and spill                  optimizer states, idle activations and parameters: to a file beside the
//                              checkpoint, or from a GPU to host memory
//
// Each is tested with the program that a rank would run, with its memory packed. In f32 all of them
// compute the same numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/statement/prepare.h"
#include "weft/program/tasks/program.h"

namespace weft::planner {

// Memory of a rank.
struct RankMemory {
  double bytes = 0;    // in memory
  double spilled = 0;  // in a file
  std::int32_t rank = 0;
  std::shared_ptr<const program::Program> program = nullptr;
  std::string plan = {};  // with several ranks: the distribution
};

// Memory of the fullest rank, from its packed program, with this recomputation and number of
// micro-batches (0: from the settings). `spill_limit`: limit beyond which it spills; 0: no
// spilling.
Result<RankMemory> memory_with(const Knowledge& state, const Observer& context, const Prepared& prepared,
                               const train::Recompute& what, std::int64_t micro_batches, double spill_limit);

// Applies the recomputation that the limit requires to the one-device plan, and sets in the
// settings whether ranks spill. `held`: bytes already in use. Does nothing without memory_limit.
// Fails if no plan fits, and reports the least limit that would.
Status fit_memory(const Knowledge& state, const Observer& context, Prepared& prepared, double held);

// What was done to fit: "within 4 GiB per rank: recomputed selective"; empty: nothing.
std::string print_within_limit(const Prepared& prepared);

// Extra seconds per step of a program that spills. On a GPU, kernels access spilled tensors over
// the bus to the host. On a CPU, their pages are mapped again at each use. Write-back to disk is
// not counted.
double spilling_seconds(const program::Program& program, bool on_gpu);

}  // namespace weft::planner
