// weft/parallel/distribute/trace_origins.h -- matches a written plan with the single-device plan.
//
//   single device           written by hand                            origin
//   %2 = contract %0, %1    %2 = contract %0, %1 {..} @h               %2
//                           %3 = all-reduce %2 {axis=gpu}              (moves %2)
//   %3 = relu %2            %4 = tanh %3 @h                            %3, but changed
//
// A plan from distribute() knows this; one that was printed, edited and read again does not. Nodes
// are matched in order, by operator, attributes and place in the model. Where the sequences differ,
// the nodes up to the next match are paired one by one. Nodes that rules moved elsewhere are found
// there. The match only decides what to compare and how to shrink a node; whether the plan is right
// is for the proof to find.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct Origins {
  std::vector<plan::NodeId> opened;  // as in DistributedPlan::opened
  std::vector<plan::NodeId> origin;  // by node of the written plan; invalid: none
  std::vector<bool> own;             // by node: differs from the single-device plan
};

// Sources by name, independent of their position.
std::map<std::string_view, plan::NodeId> sources_of(const plan::Graph& graph);

Result<Origins> trace_origins(const plan::Graph& one_device, const plan::Graph& written);

}  // namespace weft::distribute
