// weft/runtime/run/fit_program.h -- compiles a rank's program to a memory limit by spilling tensors.
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
  std::int64_t beside = 0;  // bytes of the workers' scratch memory

  std::int64_t resident() const { return program.resident_bytes() + beside; }
  std::int64_t spilled() const { return program.spilled_bytes + program.spilled_work_bytes; }
};

// Spills as much as needed for a rank to use at most `limit` bytes. It may still use more: see
// resident(). A limit of 0 means none, and nothing is spilled. A null `device` is the processor.
Result<FittedProgram> fit_program(std::shared_ptr<const plan::Graph> graph, program::CompileOptions options,
                                  std::int64_t limit, std::shared_ptr<device::Device> device = nullptr);

// Compile options of a rank's program. A GPU gets whole units and tiles them itself.
program::CompileOptions rank_compiling(int workers, bool on_gpu);

// The same for the program of one rank of a distributed plan.
Result<FittedProgram> fit_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                   program::CompileOptions options, std::int64_t limit,
                                   std::shared_ptr<device::Device> device = nullptr);

}  // namespace weft::run
