// weft/formats/chakra_program.h -- a predicted step of a distributed plan as Chakra traces.
//
//   WEFT_TRY(prediction, sim::predict(plan, mesh, layouts, costs));
//   WEFT_TRY_STATUS(write_chakra(prediction, mesh, "out/step"));      // out/step.0.et, .., out/step.json
//
// Every task of a rank's program becomes a node with its predicted time. Tasks of one stream are
// chained in order, as in Weft. A permutation among ranks becomes a send and a receive. Collectives
// carry their name, bytes and group of ranks, so that other tools can simulate them on their own
// networks. run_trace() with TraceSystem::replay reproduces the predicted step.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/predict/sim/trace/execution_trace.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::formats {

// Adds one rank. REQUIRES: a time for each task; ranks are added in order.
void add_rank(const program::Program& program, const program::Timeline& timeline, const plan::Mesh& mesh,
              std::int32_t rank, sim::ExecutionTrace& trace);

// Fails if the prediction has no timelines.
Result<sim::ExecutionTrace> execution_trace(const sim::Prediction& prediction, const plan::Mesh& mesh);

// For ranks with different programs, as pipeline stages have: programs[r] is rank r's. Each task is
// estimated by itself. Start times follow from dependencies, including messages of other ranks.
Result<sim::ExecutionTrace> execution_trace(std::span<const program::Program> programs,
                                            const plan::Mesh& mesh, const cost::StepCosts& costs);

Status write_chakra(const sim::Prediction& prediction, const plan::Mesh& mesh, const std::string& prefix);

}  // namespace weft::formats
