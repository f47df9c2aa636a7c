// weft/parallel/pipeline/roles.h -- how the nodes of a pipelined plan relate to micro-batches.
//
//   free   depends on no input, or on inputs only: parameters and values gathered from them, masks,
//          the number of labels. Computed wherever it is read
//   micro  depends on inputs and parameters; computed for every micro-batch, in a pass, at the
//          node's position
//   total  computed from sums over all micro-batches, once per step: mean gradients, the loss,
//          updates
//
// Included by the files of pipeline/ only.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/train/passes.h"

namespace weft::pipeline {

enum class Role : std::uint8_t { free, micro, total };

struct Roles {
  std::vector<Role> role;         // by node
  std::vector<train::Pass> pass;  // by node; never update for micro nodes
  std::vector<bool> sums;         // by node: sums over micro-batches
  std::vector<bool> each;         // by node: a different value for each micro-batch
};

// Fails, with the node, if something needs the whole batch before a micro-batch can go on.
Result<Roles> roles_of(const distribute::DistributedPlan& plan);

// Adjusts positions, by node as in PipelineInfo::position: data that flows forward never moves to an
// earlier position, and data that flows back never to a later one.
void settle_positions(const plan::Graph& graph, const Roles& roles, std::vector<std::int32_t>& position);

// By value: the stages that need it, as a bit set.
using Stages = std::uint64_t;
inline constexpr std::int32_t kMostStages = 64;

constexpr Stages only(std::int32_t stage) { return Stages{1} << stage; }

// The stages that run a node at this position, over all micro-batches.
Stages stages_at(const Schedule& schedule, std::int32_t position);
// The stage that computes what is computed once per step.
inline std::int32_t owner_at(const Schedule& schedule, std::int32_t position) {
  return schedule.stage_at(position, 0);
}

// By value of the plan; for a source: the stages that hold it.
std::vector<Stages> stages_that_need(const distribute::DistributedPlan& plan, const Roles& roles,
                                     const Schedule& schedule);

}  // namespace weft::pipeline
