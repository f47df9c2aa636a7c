// weft/planner/step/fit_memory.h -- how TRAIN stays within memory_limit: keep, recompute, or send away.
//
//   all is kept                fits?
//   recompute selective        what frees the most bytes for the work it takes
//   and so many layers         as few as fit
//   and spill                  optimizer states, waiting activations and parameters to a file beside the checkpoint,
//                              of a GPU to the host's memory
//
// Each is judged by the program that a rank would run, its memory packed. In f32 the same numbers come out of all of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/statement/prepare.h"
#include "weft/program/tasks/program.h"

namespace weft::planner {

// What a rank takes.
struct RankMemory {
  double bytes = 0;    // in memory
  double spilled = 0;  // in a file
  std::int32_t rank = 0;
  std::shared_ptr<const program::Program> program = nullptr;
  std::string plan = {};  // of several ranks: the distribution
};

// What the fullest rank takes, by its packed program, where the plan does this again; `micro_batches` of it: 0, as the
// settings say. `spill_limit`: beyond which it spills; 0: it does not.
Result<RankMemory> memory_with(const Knowledge& state, const Observer& context, const Prepared& prepared,
                               const train::Recompute& what, std::int64_t micro_batches, double spill_limit);

// Makes the plan of one device compute again what the limit asks for, and says in the settings whether ranks spill.
// `held`: bytes that are taken already. Nothing without memory_limit. Fails where no plan fits, with the least.
Status fit_memory(const Knowledge& state, const Observer& context, Prepared& prepared, double held);

// What the limit asked for: "within 4 GiB a rank: recomputed selective"; empty: nothing.
std::string print_within_limit(const Prepared& prepared);

// What a step of a program that spills takes longer: on a GPU kernels reach what is spilled over the bus to the host,
// on a processor its pages are mapped again each time they are used. What the disk writes behind is not counted.
double spilling_seconds(const program::Program& program, bool on_gpu);

}  // namespace weft::planner
