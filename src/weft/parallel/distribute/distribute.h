// weft/parallel/distribute/distribute.h -- makes a mesh's plan from a single-device plan.
//
//   %2 = contract %0, %1 {to=[b,f]}          %2 = contract %0, %1 {to=[b,f]}         sliced(f) on gpu
//   %4 = contract %2, %3 {to=[b,d]}          %4 = contract %2, %3 {to=[b,d]}         partial(sum) on gpu
//   %5 = layer-norm %4 {over=[d]}            %5 = all-reduce %4 {axis=gpu}           replicated
//                                            %6 = layer-norm %5 {over=[d]}
//
// For every node and mesh axis, choose_loops.h selects the loop along which the node is sliced.
// That determines the layouts of its operands and results. Where a value's layout differs from what
// its reader needs, communication is inserted (convert.h), once per phase for all readers that need
// the same layout. Partial sums stay partial as long as operators can pass them on. Sources get
// their layouts from their readers and from what is sharded. A parameter's next value is converted
// to the layout of the parameter. An operator that needs an index whole which an axis slices first
// is decomposed beforehand where possible (decompose_nodes.h).
//
// The result is a plan that spmd::infer_layouts accepts; nothing about it is implicit.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// The link costs that compare conversions where several lead to one layout.
struct AxisCost {
  double latency_seconds = 5e-6;
  double bytes_per_second = 50e9;  // per direction and rank
  // The axis is time: micro-batches run one after the other on the same rank. A sum along it
  // accumulates without any communication. So partial sums are added there before any other axis,
  // and nothing is sliced or joined on the way.
  bool in_time = false;
};

class DecompositionCache;
class Signatures;

struct DistributeOptions {
  std::vector<AxisCost> prices = {};  // one per mesh axis; empty: all equal
  // The signatures of the graph, for callers that distribute it often; null: computed here.
  const Signatures* signatures = nullptr;
  DecompositionCache* openings = nullptr;  // likewise, of that graph (decompose_nodes.h)
  // The backward pass gathers again what the forward pass gathered, instead of keeping it.
  bool gather_again = true;
  // A parameter that would leave fewer elements than this per rank is not sharded: gathering it
  // costs more time than it saves memory.
  std::int64_t smallest_share = 1024;
  // For a distribution whose stages have meshes of their own: the stage of every node. Called for
  // the plan, and for the plan with nodes decomposed.
  std::function<Result<std::vector<std::int32_t>>(const plan::Graph&)> stages = {};
};

// How a plan's steps are split into stages and micro-batches. The plan then covers the mesh of one
// stage, with the micro-batches as its last axis if there are several. pipeline/pipelined_plan.h makes it;
// pipeline/unroll.h turns it into the plan that a rank runs.
struct PipelineInfo {
  Distribution distribution;  // of all ranks, with stages, micro-batches and schedule
  // By node: its position in the chain of stages that a micro-batch passes through; -1: wherever it
  // is needed.
  std::vector<std::int32_t> position;
};

struct DistributedPlan {
  plan::Graph graph;
  plan::Mesh mesh;
  std::vector<plan::Layout> layouts;  // by value, as from spmd::infer_layouts
  // The nodes of the single-device plan that were decomposed. `origin` refers to the plan with
  // these decomposed, as made by decompose_nodes().
  std::vector<plan::NodeId> opened;
  // By node: the single-device node that it implements. For a node that moves a value: the first
  // reader that it moves the value for, or, if that is an output or an update, the value's
  // producer.
  std::vector<plan::NodeId> origin;
  // By node: whether rules or hand edits made it differ from the single-device plan. Empty: none
  // does.
  std::vector<bool> own = {};
  std::optional<PipelineInfo> time = {};

  // The mesh of all ranks.
  const plan::Mesh& whole_mesh() const { return time ? time->distribution.mesh : mesh; }
  bool is_own(plan::NodeId node) const { return !own.empty() && own[node.value]; }
};

// Nodes keep their phase; one that moves a value gets the phase of the reader that it moves it for.
// Fails on an index or axis that does not exist, on an exception that cannot be satisfied, and on
// exceptions that contradict one another.
Result<DistributedPlan> distribute(const plan::Graph& graph, const Distribution& distribution,
                                   const DistributeOptions& options = {});

}  // namespace weft::distribute
