// weft/predict/cost/plan_cost.h -- a lower bound of a plan's time for one inference on one device.
//
//   the sum over the nodes that run of   launch + max(flops / peak rate, bytes / memory bandwidth)
//
// A node runs if an output needs it and it depends on an input. Nodes that depend only on
// parameters, states and constants are computed once beforehand and cost nothing here. In a plan
// that learns, only constants are computed beforehand: nodes that depend on parameters run in every
// step.
//
// Nodes that move nothing cost nothing, as in compiled programs. Rename, split and merge are the
// same memory under other names; transpose, slice and broadcast are read in place through their
// strides. Operators that need contiguous operands (a convolution, a pool, a gather, a concat, any
// operator with its own kernel) pay for a copy of an operand that is not contiguous. So does a
// merge of indices that are not adjacent in memory. A slice of the slowest index is contiguous.
//
//   %2 = slice %1 {along=c, ..} : f32[b=8,c=16,h=7,w=7]     0
//   %3 = relu %2                                            reads 16 of the channels in place
//   %4 = conv2d %2, %w                                      copies them first: read, write, launch
//
// Not modelled: fusion of pointwise chains (each of their nodes has its own cost), and the copy of
// an output that is a view of another value.
#pragma once
#include <vector>

#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

// What the node adds to a run, whether or not it could be computed beforehand: its kernel, and
// copies of operands that do not have the layout it needs. It depends only on the node, on the
// views that produce its operands and, for eight-bit scaling nodes, on their producers. A search
// may cache it while these stay the same.
double node_seconds(const plan::NodeView& node, const cluster::Device& device);

// The flops of all nodes; a multiply-add counts as two.
double plan_flops(const plan::Graph& graph);

// runs[n]: an output needs node n, and it depends on an input or, if the plan `learns`, on a
// parameter or state.
std::vector<bool> nodes_that_run(const plan::Graph& graph, bool learns = false);

// The sum of node_seconds over the nodes that run.
double plan_seconds(const plan::Graph& graph, const cluster::Device& device, bool learns = false);

}  // namespace weft::cost
