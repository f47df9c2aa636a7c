// weft/session/written_plan.h -- a distributed plan as text that can be read again: its mesh, its model.
//
//   # mesh: rank=2
//   # model: TRAIN digits_mlp WITH (b = 32, p = 64, f = 128, c = 10, optimizer = sgd)
//   plan digits_mlp
//   %0 = input {name=pixels, type=f32[b=32,p=64], layout="sliced(b) on rank"}
//   ..
//
// EXPLAIN (FORMAT plan) prints it, `weft plan` reads it, changed by hand or not.
//
// Included by the files of session/ only.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/distribute/distribute.h"
#include "weft/session/prepare.h"

namespace weft::session {

std::string print_written(const distribute::DistributedPlan& plan, const Prepared& prepared);

// Whether the text is a plan rather than a script: its first word, behind comments, is `plan`.
bool is_plan_text(std::string_view text);

// What a plan's text says above the plan; both may be empty.
struct PlanHead {
  std::string mesh, model;
};
PlanHead read_head(std::string_view text);

// Fails where the text is no plan, where layouts do not go together (with the node), and where its sources or
// outputs are not those of the plan of one device.
Result<distribute::DistributedPlan> read_written(std::string_view text, const plan::Mesh& mesh,
                                                 const plan::Graph& one_device);

}  // namespace weft::session
