// weft/predict/sim/step/memory_curve.h -- what a rank's memory holds: over time, and by kind at its fullest.
//
//   bytes ^        __        temporaries come and go on top of what is kept from step to step
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

// When, and bytes alive from then on. A buffer is alive from the first task of the unit that writes it first
// to the last task of the unit that reads it last.
std::vector<std::pair<double, double>> memory_curve(const program::Program& program,
                                                    std::span<const program::TaskTime> times);

// At the unit at which most is alive. Kinds are told by structure alone:
//
//   parameters, inputs   sources of that role            optimizer   states
//   gradients            what an update reads besides sources, back through exchanges, views and casts
//   activations          made before the loss and read after it
//   scratch              the rest up to `total_bytes`, with what packing leaves unused
MemoryByKind memory_by_kind(const program::Program& program, double total_bytes);

// The same during every unit, in their order; scratch is what is alive and none of the others.
std::vector<MemoryByKind> memory_by_unit(const program::Program& program);

// What is alive during a unit, the largest first, and of which kind: a name of MemoryByKind::kinds().
struct AliveBuffer {
  const program::Buffer* buffer = nullptr;
  std::string_view kind;
};
std::vector<AliveBuffer> alive_during(const program::Program& program, std::uint32_t unit);

}  // namespace weft::sim
