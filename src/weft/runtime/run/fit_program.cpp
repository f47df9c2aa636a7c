#include "weft/runtime/run/fit_program.h"

#include <algorithm>

#include "weft/device/device.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/plan/spmd/localize.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/exec/rank_bytes.h"

namespace weft::run {

Result<FittedProgram> fit_program(std::shared_ptr<const plan::Graph> graph, program::CompileOptions options,
                                  std::int64_t limit, std::shared_ptr<device::Device> device) {
  FittedProgram made;
  WEFT_TRY(whole, program::compile(graph, options));
  made.program = std::move(whole);
  if (limit <= 0) return made;
  if (device == nullptr) {
    WEFT_TRY(processor, device::open_device("cpu"));
    device = std::move(processor);
  }
  WEFT_TRY(beside, exec::bytes_beside(made.program, *device, options.workers));
  made.beside = beside;
  if (made.resident() <= limit) return made;
  options.resident_limit = std::max<std::int64_t>(limit - beside, 1);
  WEFT_TRY(spilling, program::compile(std::move(graph), options));
  made.program = std::move(spilling);
  return made;
}

program::CompileOptions rank_compiling(int workers, bool on_gpu) {
  return {.workers = on_gpu ? 1 : workers, .any_float = on_gpu, .accelerated = on_gpu, .tiles = !on_gpu};
}

Result<FittedProgram> fit_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                   program::CompileOptions options, std::int64_t limit,
                                   std::shared_ptr<device::Device> device) {
  if (plan.time) {
    WEFT_TRY(made, pipeline::unroll(plan, rank));
    options.turns = made.turns;
    return fit_program(std::make_shared<plan::Graph>(std::move(made.graph)), options, limit,
                       std::move(device));
  }
  WEFT_TRY(local, spmd::localize(plan.graph, plan.mesh, plan.layouts, rank, spmd::Exchanges::stay));
  return fit_program(std::make_shared<plan::Graph>(std::move(local.graph)), options, limit,
                     std::move(device));
}

}  // namespace weft::run
