// weft/planner/step/written_plan.h -- a distributed plan as text that can be read again: its mesh, its model.
//
//   # mesh: rank=2
//   # model: TRAIN digits_mlp WITH (b = 32, p = 64, f = 128, c = 10, optimizer = sgd)
//   plan digits_mlp
//   %0 = input {name=pixels, type=f32[b=32,p=64], layout="sliced(b) on rank"}
//   ..
//
// Where steps are cut in time the mesh is that of a stage, with micro-batches as its last axis, the model says the
// distribution, and every node the place where it lies on a micro-batch's way through the stages:
//
//   # mesh: data=2, micro=4
//   # model: TRAIN digits_mlp WITH (b = 32, .., distribution = 'stage=2: stage; data=2: slice b; micro=4')
//   plan digits_mlp
//   %3 = contract %0, %1 {to=[b,f]} : f32[b=32,f=128] @h  # place 0
//
// EXPLAIN (FORMAT plan) prints it, `weft plan` reads it, changed by hand or not.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

std::string print_written(const distribute::DistributedPlan& plan, const Prepared& prepared);

// Whether the text is a plan rather than a script: its first word, behind comments, is `plan`.
bool is_plan_text(std::string_view text);

// What a plan's text says above the plan; both may be empty.
struct PlanHead {
  std::string mesh, model;
};
PlanHead read_head(std::string_view text);
// Whether its model says stages or micro-batches.
bool is_cut_in_time(const PlanHead& head);

// Fails where the text is no plan, where layouts do not go together (with the node), and where its sources or
// outputs are not those of the plan of one device. `in_time`: how its steps are cut in time, where they are; then
// also where a node's place is none.
Result<distribute::DistributedPlan> read_written(std::string_view text, const plan::Mesh& mesh,
                                                 const plan::Graph& one_device,
                                                 const std::optional<distribute::Distribution>& in_time = {});

}  // namespace weft::planner
