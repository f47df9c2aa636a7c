// weft/predict/cost/plan_cost.h -- how long a plan takes for one answer on one device, at best.
//
//   the sum over the nodes that run of   launch + max(flops / peak rate, bytes / memory bandwidth)
//
// What runs: the nodes that an output needs and that depend on an input. What depends on parameters,
// states and constants alone is known before the first question is asked, and costs nothing here. Of a plan
// that learns only constants stay what they are: what is computed from parameters runs in every step.
//
// What moves nothing costs nothing, as in the programs that plans are compiled to: rename, split and
// merge are the same memory under other names; transpose, slice and broadcast are read where they lie,
// through their strides. A reader that takes its operands only in order and without gaps (a
// convolution, a pool, a gather, a concat, any operator with a kernel of its own) pays for the copy of
// one that lies otherwise, and so does a merge of indices that are not neighbours in memory; a slice of
// the slowest index lies in order as it is.
//
//   %2 = slice %1 {along=c, ..} : f32[b=8,c=16,h=7,w=7]     0
//   %3 = relu %2                                            reads 16 of the channels where they lie
//   %4 = conv2d %2, %w                                      copies them first: read, write, launch
//
// Not counted: that pointwise chains run as one pass, so that each of their nodes is priced on its own;
// and the copy that an output needs when it is a view of something else.
#pragma once
#include <vector>

#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

// What the node adds to a run, whether or not it could be done beforehand: its kernel, and copies of operands
// that do not lie as it needs them. It depends only on the node, on the views that make its operands and, of what
// scales numbers of eight bits, on what leads to it: a search may keep it as long as these stay.
double node_seconds(const plan::NodeView& node, const cluster::Device& device);

// The arithmetic of all nodes, a multiply-add as two.
double plan_flops(const plan::Graph& graph);

// runs[n]: an output needs node n, and it depends on an input, or, where the plan `learns`, on a parameter or
// a state.
std::vector<bool> nodes_that_run(const plan::Graph& graph, bool learns = false);

// The sum of node_seconds over the nodes that run.
double plan_seconds(const plan::Graph& graph, const cluster::Device& device, bool learns = false);

}  // namespace weft::cost
