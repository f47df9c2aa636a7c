// weft/parallel/distribute/trace_origins.h -- which node of the plan of one device each node of a written plan is.
//
//   one device              written by hand                            origin
//   %2 = contract %0, %1    %2 = contract %0, %1 {..} @h               %2
//                           %3 = all-reduce %2 {axis=gpu}              (moves %2)
//   %3 = relu %2            %4 = tanh %3 @h                            %3, but written otherwise
//
// A plan that distribute() made knows this; one that was printed, changed and read again does not. Nodes go
// by operator, attributes and place in the model, in order; where the two part ways, what lies between the
// next nodes that agree is paired one by one; but what rules moved elsewhere is found there. This only says what to compare with what and how to make a
// node smaller: whether the plan is right is for the proof to find.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct Origins {
  std::vector<plan::NodeId> opened;  // as DistributedPlan::opened
  std::vector<plan::NodeId> origin;  // by node of the written plan; invalid: it has none
  std::vector<bool> own;             // by node: not as the plan of one device has it
};

// Wherever it stands, a source is known by its name.
std::map<std::string_view, plan::NodeId> sources_of(const plan::Graph& graph);

Result<Origins> trace_origins(const plan::Graph& one_device, const plan::Graph& written);

}  // namespace weft::distribute
