// weft/planner/step/written_plan.h -- read and write a distributed plan as text, with its mesh and model.
//
//   # mesh: rank=2
//   # model: TRAIN digits_mlp WITH (b = 32, p = 64, f = 128, c = 10, optimizer = sgd)
//   plan digits_mlp
//   %0 = input {name=pixels, type=f32[b=32,p=64], layout="sliced(b) on rank"}
//   ..
//
// With stages or micro-batches, the mesh is that of one stage with micro-batches as its last axis,
// the model includes the distribution, and every node has its place along a micro-batch's path
// through the stages:
//
//   # mesh: data=2, micro=4
//   # model: TRAIN digits_mlp WITH (b = 32, .., distribution = 'stage=2: stage; data=2: slice b; micro=4')
//   plan digits_mlp
//   %3 = contract %0, %1 {to=[b,f]} : f32[b=32,f=128] @h  # place 0
//
// EXPLAIN (FORMAT plan) prints this text. `weft plan` reads it, edited or not.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

std::string print_written(const distribute::DistributedPlan& plan, const Prepared& prepared);

// Whether the text is a plan rather than a script: its first word after comments is `plan`.
bool is_plan_text(std::string_view text);

// The header lines of a plan's text; both may be empty.
struct PlanHead {
  std::string mesh, model;
};
PlanHead read_head(std::string_view text);
// Whether the model line has stages or micro-batches.
bool is_cut_in_time(const PlanHead& head);

// Fails if the text is not a plan, if layouts do not match (naming the node), or if sources or
// outputs differ from those of the one-device plan. `in_time`: the distribution with stages or
// micro-batches, if any; then every node must have a valid place.
Result<distribute::DistributedPlan> read_written(std::string_view text, const plan::Mesh& mesh,
                                                 const plan::Graph& one_device,
                                                 const std::optional<distribute::Distribution>& in_time = {});

}  // namespace weft::planner
