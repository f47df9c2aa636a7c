// weft/parallel/pipeline/roles.h -- what a node of a plan in time is to micro-batches.
//
//   free    depends on no input, or on inputs alone: parameters and what is gathered of them, masks, how many
//           labels there are. Made wherever it is read
//   micro   depends on both, and is made for every micro-batch, in a pass of it, where the node lies on the way
//   total   made of the sums over all micro-batches, once a step: gradients' means, the loss, updates
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
  std::vector<train::Pass> pass;  // by node; of micro nodes never update
  std::vector<bool> sums;         // by node: sums over micro-batches
  std::vector<bool> each;         // by node: another value for each micro-batch
};

// Fails, with the node, where something needs the whole batch before a micro-batch can go on.
Result<Roles> roles_of(const distribute::DistributedPlan& plan);

// By node, as InTime::position has it: given where each node would lie, such that what flows forward comes to
// no earlier place and what flows back to no later one.
void settle_positions(const plan::Graph& graph, const Roles& roles, std::vector<std::int32_t>& position);

// By value: the stages that need it, as bits.
using Stages = std::uint64_t;
inline constexpr std::int32_t kMostStages = 64;

constexpr Stages only(std::int32_t stage) { return Stages{1} << stage; }

// The stages on which a node at this place runs, of all micro-batches.
Stages stages_at(const Schedule& schedule, std::int32_t position);
// The one that has what is made once of all of them.
inline std::int32_t owner_at(const Schedule& schedule, std::int32_t position) {
  return schedule.stage_at(position, 0);
}

// By value of the plan; of a source: the stages that hold it.
std::vector<Stages> stages_that_need(const distribute::DistributedPlan& plan, const Roles& roles,
                                     const Schedule& schedule);

}  // namespace weft::pipeline
