// weft/formats/chakra_program.h -- a predicted step of a distributed plan as Chakra traces.
//
//   WEFT_TRY(prediction, sim::predict(plan, mesh, layouts, costs));
//   WEFT_TRY_STATUS(write_chakra(prediction, mesh, "out/step"));      // out/step.0.et, .., out/step.json
//
// Every task of a rank's program becomes a node with the time that was predicted for it; tasks that share a
// stream come one after the other, as they do in Weft. A permutation among ranks becomes a send and a
// receive. What a collective is called, its bytes and its group of ranks are written for others to simulate
// on wires of theirs; run_trace() with TraceSystem::replay gives the predicted step again.
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

// Fails when the prediction was made without timelines.
Result<sim::ExecutionTrace> execution_trace(const sim::Prediction& prediction, const plan::Mesh& mesh);

// Where ranks do not do the same, as stages do not: programs[r] is what rank r runs. Every task is priced by itself, and
// when it comes follows from what it waits for, messages of other ranks among it.
Result<sim::ExecutionTrace> execution_trace(std::span<const program::Program> programs,
                                            const plan::Mesh& mesh, const cost::StepCosts& costs);

Status write_chakra(const sim::Prediction& prediction, const plan::Mesh& mesh, const std::string& prefix);

}  // namespace weft::formats
