// weft/parallel/pipeline/pipelined_plan.h -- pipelined plans: stages, micro-batches and their schedule.
//
//   stage=2: stage; data=2: slice b; micro=4; schedule zb_h1
//
//   the plan of one stage's mesh, data=2, with the micro-batches as a further axis: micro=4: slice b
//   a sum along micro       accumulates; other collectives along it need the whole batch at once
//   position of each node   where the node runs on a micro-batch's path through the stages
//
// Stages with different meshes slice their nodes accordingly, all on the same axes
// (distribute/stage_meshes.h). Micro-batches are then the first axis, so that a micro-batch is the
// same rows of the batch for all stages, however many ranks slice it. A rank is fed the whole batch
// and reads the rows of its blocks. A value sent between such stages is resharded. What makes a
// rank's shard smaller runs on the sending mesh, and what makes it larger on the receiving one, so
// no element is sent twice.
//
// Micro-batches are thus distributed like ranks, and the work of a micro-batch follows as a rank's
// does: rows, positions, dropout masks. unroll.h turns the result into the plan that each rank
// runs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

// The micro-batch axis in the mesh of a stage.
inline constexpr std::string_view kMicroAxis = "micro";

// The passes of each stage; verified. One stage if the distribution has none. Fails if the schedule
// does not exist, or not for this number of stages, chunks and micro-batches.
Result<Schedule> schedule_of(const distribute::Distribution& distribution);
// The schedule for the stages of this rank, with its number of micro-batches.
Result<Schedule> schedule_of(const distribute::Distribution& distribution, std::int32_t rank);

// The batch index: the first of every input that has one. Fails if inputs differ in it.
Result<Symbol> batch_index(const plan::Graph& graph);

// `graph`: a single-device training plan for the whole batch. `work`: the time of a micro-batch per
// part of its chain, used to balance the stages; empty: flops. `ends`: where the run of parts of
// each position ends, if known; empty: balanced by work. Also fails if the batch does not divide
// into micro-batches, if a node needs all of it at once, and if there are more positions than
// parts.
Result<distribute::DistributedPlan> distribute_pipelined(const plan::Graph& graph,
                                                         const distribute::Distribution& distribution,
                                                         const distribute::DistributeOptions& options = {},
                                                         std::span<const double> work = {},
                                                         std::span<const std::size_t> ends = {});

// For a plan that was written as text: completes the positions of its nodes, where -1 means not
// stated. Fails, with the node, on a position that does not exist, and if data would have to flow
// backwards.
Status take_places(distribute::DistributedPlan& plan);

// A rank's micro-batches among those of all ranks along its axis; also for equal shares.
struct Taken {
  std::int64_t first = 0, count = 1;
};
Taken taken_by(const distribute::Distribution& distribution, std::int32_t rank);
// The axis of the stage's mesh whose ranks have unequal numbers of micro-batches.
std::optional<std::size_t> unequal_axis(const distribute::Distribution& distribution);
// After a reduction of ranks or micro-batches: numbers in the same proportions, at least 1 each.
void fit_micro_batches(distribute::Distribution& distribution);
// Converts a layout on the plan's mesh to the axes of a stage, without micro-batches.
plan::Layout layout_in_stage(const distribute::DistributedPlan& plan, plan::Layout layout);
// The rows of a source that a rank of the whole mesh holds: those of its micro-batches.
std::vector<plan::Share> pipelined_shares(const distribute::DistributedPlan& plan, plan::NodeId source,
                                          std::int32_t rank);

// The mesh of one stage, without micro-batches; then the stage, and the rank within it, of a rank
// of the whole mesh.
plan::Mesh inner_mesh(const distribute::Distribution& distribution);
std::int32_t stage_of(const distribute::Distribution& distribution, std::int32_t rank);
std::int32_t inner_rank(const distribute::Distribution& distribution, std::int32_t rank);

}  // namespace weft::pipeline
