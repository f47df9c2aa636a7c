// weft/runtime/run/fit_program.h -- the program of a rank that stays within a limit: what does not fit is spilled.
#pragma once
#include <cstdint>
#include <memory>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/program.h"

namespace weft::run {

struct FittedProgram {
  program::Program program;
  std::int64_t beside = 0;  // bytes that its workers have to themselves

  std::int64_t resident() const { return program.resident_bytes() + beside; }
  std::int64_t spilled() const { return program.spilled_bytes + program.spilled_work_bytes; }
};

// Spills as much as needs be for a rank to take `limit` bytes at most, and may take more even so: resident() tells.
// 0: no limit, and nothing is spilled. `device`: none is the processor.
Result<FittedProgram> fit_program(std::shared_ptr<const plan::Graph> graph, program::CompileOptions options,
                                  std::int64_t limit, std::shared_ptr<device::Device> device = nullptr);

// How a rank's program is compiled. A GPU is given units whole: it cuts them itself.
program::CompileOptions rank_compiling(int workers, bool on_gpu);

// Of what a rank of a plan on a mesh runs.
Result<FittedProgram> fit_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                   program::CompileOptions options, std::int64_t limit,
                                   std::shared_ptr<device::Device> device = nullptr);

}  // namespace weft::run
