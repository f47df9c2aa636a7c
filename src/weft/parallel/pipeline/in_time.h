// weft/parallel/pipeline/in_time.h -- a plan whose steps are cut in time: stages, micro-batches and their schedule.
//
//   stage=2: stage; data=2: slice b; micro=4; schedule zb_h1
//
//   the plan of one stage's mesh, data=2, with the micro-batches as a further axis: micro=4: slice b
//   a sum along micro       accumulates; all else that goes along it would need the whole batch at once
//   every node's position   its place on the way of a micro-batch through the stages, along the chain of parts
//
// Stages with meshes of their own cut their nodes as these say, all of the same axes (distribute/stage_meshes.h). There
// micro-batches are the first axis, so that one of them is the same rows of the batch to all stages, however many ranks
// cut it; a rank is fed the whole batch, of which it takes the rows of its blocks. What crosses from one to another is a reshard: what makes a rank's share smaller is done before it is sent, on the mesh it
// comes from, and what makes it larger on the one it comes to. So no element goes between stages twice.
//
// So micro-batches are distributed as ranks are, and what one of them is to a rank follows as its shares do:
// rows, positions, what dropout drops. unroll.h makes of it what each rank runs.
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

// The axis of micro-batches in the mesh of a stage.
inline constexpr std::string_view kMicroAxis = "micro";

// What each stage does; verified. One stage where the distribution has none. Fails on a schedule that does not
// exist, or not for as many stages, chunks and micro-batches.
Result<Schedule> schedule_of(const distribute::Distribution& distribution);
// What the stages do that a rank is one of: theirs are as many micro-batches as it takes.
Result<Schedule> schedule_of(const distribute::Distribution& distribution, std::int32_t rank);

// The index of examples: the first of every input that has one. Fails where inputs differ in it.
Result<Symbol> batch_index(const plan::Graph& graph);

// `graph`: a training plan of one device, for the whole batch. `work`: by part of its chain, what a micro-batch of it
// takes, by which stages are cut; empty: what it computes. `ends`: where the runs of parts end, by place, where that is
// known; empty: as the work says. Fails also where the batch does not go in
// micro-batches, where a node needs all of it at once, and where there are more places on the way than parts.
Result<distribute::DistributedPlan> distribute_in_time(const plan::Graph& graph,
                                                       const distribute::Distribution& distribution,
                                                       const distribute::DistributeOptions& options = {},
                                                       std::span<const double> work = {},
                                                       std::span<const std::size_t> ends = {});

// A plan that was written down: the places that its nodes are said to have, -1 where none is, become those that they
// have. Fails, with the node, where there is no such place, and where what flows on would have to go back.
Status take_places(distribute::DistributedPlan& plan);

// The micro-batches that a rank takes of all that the ranks along its axis do; those of equal shares too.
struct Taken {
  std::int64_t first = 0, count = 1;
};
Taken taken_by(const distribute::Distribution& distribution, std::int32_t rank);
// The axis of the stage's mesh whose ranks take unequal numbers of them.
std::optional<std::size_t> unequal_axis(const distribute::Distribution& distribution);
// Where ranks or micro-batches have become fewer: numbers in the same proportions, 1 at least.
void fit_takes(distribute::Distribution& distribution);
// Of a layout on the plan's mesh: on the axes of a stage alone, without micro-batches.
plan::Layout layout_in_stage(const distribute::DistributedPlan& plan, plan::Layout layout);
// What a rank of the whole mesh holds of a source: rows of the micro-batches that it takes.
std::vector<plan::Share> shares_in_time(const distribute::DistributedPlan& plan, plan::NodeId source,
                                        std::int32_t rank);

// The mesh of one stage, without micro-batches; and the part of it that a rank of the whole mesh is.
plan::Mesh inner_mesh(const distribute::Distribution& distribution);
std::int32_t stage_of(const distribute::Distribution& distribution, std::int32_t rank);
std::int32_t inner_rank(const distribute::Distribution& distribution, std::int32_t rank);

}  // namespace weft::pipeline
