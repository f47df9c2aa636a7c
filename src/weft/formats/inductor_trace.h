// weft/formats/inductor_trace.h -- a predicted step in the form of a trace of PyTorch's profiler.
//
//   torch._inductor.config.aten_distributed_optimizations.profile_guided_estimations_profile_path = "step.json"
//
// With such a file, Inductor's overlap scheduler takes times from the trace instead of its own
// estimates. It reads
//
//   kernels of collectives   args: Collective name, Process Group Ranks, Group size, In and Out msg
//                            nelems, dtype. Other sizes are interpolated; groups of other ranks are
//                            matched by their stride
//   cpu_op aten::mm, ..      args: Input Dims, Input Strides, Input type, joined to the kernel by
//                            External id. Shapes and strides must match exactly
//
// A predicted time does not depend on whether an operand or the product is transposed, so each product
// of matrices is listed for all combinations, and with a bias as aten::addmm. One combination is drawn
// where the step computes it, the others after the step. So is each forward attention, for each of
// PyTorch's implementations. Inductor estimates other kernels itself, gradients of attention among them,
// whose operands depend on the implementation.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::formats {

// REQUIRES: a time for each task.
std::string print_inductor_trace(const program::Program& program, const program::Timeline& timeline,
                                 const plan::Mesh& mesh, std::int32_t rank);

// Of rank 0: Inductor applies one trace to all ranks. Fails if the prediction has no timelines.
Status write_inductor_trace(const sim::Prediction& prediction, const plan::Mesh& mesh,
                            const std::string& path);

}  // namespace weft::formats
