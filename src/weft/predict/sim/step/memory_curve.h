// weft/predict/sim/step/memory_curve.h -- a rank's memory use: over time, and by kind at the peak.
//
//   bytes ^        __        temporaries come and go on top of what persists between steps
//         |     __|  |_
//         |____|       |___
//         +------------------> seconds
#pragma once
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/predict/sim/step/predict.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::sim {

// Times, and bytes allocated from then on. A buffer is live from the first task of the first unit
// that writes it to the last task of the last unit that reads it.
std::vector<std::pair<double, double>> memory_curve(const program::Program& program,
                                                    std::span<const program::TaskTime> times);

// At the unit with the peak. Kinds are derived from the plan's structure alone:
//
//   parameters, inputs   sources of that role            optimizer   states
//   gradients            what an update reads besides sources, back through exchanges, views and casts
//   activations          computed before the loss and read after it
//   scratch              the rest up to `total_bytes`, including space lost to packing
MemoryByKind memory_by_kind(const program::Program& program, double total_bytes);

// The same for every unit, in program order; scratch is every other live buffer.
std::vector<MemoryByKind> memory_by_unit(const program::Program& program);

// A buffer that is live during a unit, with its kind (one of MemoryByKind::kinds()). Largest first.
struct LiveBuffer {
  const program::Buffer* buffer = nullptr;
  std::string_view kind;
};
std::vector<LiveBuffer> live_buffers(const program::Program& program, std::uint32_t unit);

}  // namespace weft::sim
