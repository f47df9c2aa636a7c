// weft/app/command/plan_with_layouts.h -- the inputs of `weft plan`.
//
// Included by app/command only.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/planner/step/written_plan.h"

namespace weft::command {

// The contents of the file `what`, or `what` itself if it is a statement.
Result<std::string> given_text(const std::string& what);

// The mesh in `given`, or if that is empty, the mesh in the plan's header.
Result<plan::Mesh> mesh_of(const std::string& given, const planner::PlanHead& head);

// A plan read without its model.
struct PlanWithLayouts {
  plan::Graph graph;
  plan::Mesh mesh;
  std::vector<plan::Layout> layouts;
  bool in_time = false;  // it has stages or micro-batches
};
Result<PlanWithLayouts> read_plan_with_layouts(const std::string& file, const std::string& given_mesh);

}  // namespace weft::command
