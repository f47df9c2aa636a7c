// weft/app/command/laid_out_plan.h -- what `weft plan` is given: a text, and a plan with its mesh and layouts.
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

// A file's text, or the words themselves where they are a statement.
Result<std::string> given_text(const std::string& what);

// As `given` says, else as the plan's head does.
Result<plan::Mesh> mesh_of(const std::string& given, const planner::PlanHead& head);

// A plan by itself, whatever its model.
struct LaidOutPlan {
  plan::Graph graph;
  plan::Mesh mesh;
  std::vector<plan::Layout> layouts;
  bool in_time = false;  // it is of one stage and of micro-batches
};
Result<LaidOutPlan> read_laid_out(const std::string& file, const std::string& given_mesh);

}  // namespace weft::command
