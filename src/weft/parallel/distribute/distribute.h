// weft/parallel/distribute/distribute.h -- the plan of a mesh from the plan of one device and a distribution.
//
//   %2 = contract %0, %1 {to=[b,f]}          %2 = contract %0, %1 {to=[b,f]}         sliced(f) on gpu
//   %4 = contract %2, %3 {to=[b,d]}          %4 = contract %2, %3 {to=[b,d]}         partial(sum) on gpu
//   %5 = layer-norm %4 {over=[d]}            %5 = all-reduce %4 {axis=gpu}           replicated
//                                            %6 = layer-norm %5 {over=[d]}
//
// Every node is asked, axis by axis, along which of its loops it is cut (choose_loops.h); that says what it
// needs of its operands and what it gives. Where a value is held otherwise than its reader needs it,
// communication is put in between (convert.h), once for all readers of a phase that need the same. Addends go
// on as addends as long as operators carry them through. Sources get their layouts from their readers and
// from what is sharded; a parameter's next value is brought to where the parameter lies. An operator that
// needs whole what an axis cuts first is opened before that, where it can be (open_nodes.h).
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

// By what conversions are weighed where several lead to one layout.
struct AxisPrice {
  double latency_seconds = 5e-6;
  double bytes_per_second = 50e9;  // each way, per rank
  // Its ranks are one after the other in time: a sum along it is kept, added to and moved by nobody. So addends
  // are summed there before anywhere else, and nothing is cut or joined on the way.
  bool in_time = false;
};

class Openings;
class Signatures;

struct DistributeOptions {
  std::vector<AxisPrice> prices = {};  // one for each mesh axis; empty: all alike
  // Of the graph, for a caller that distributes it often; null: they are worked out.
  const Signatures* signatures = nullptr;
  Openings* openings = nullptr;  // likewise, of that graph (open_nodes.h)
  // What the forward pass gathered is gathered again by the backward pass rather than kept.
  bool gather_again = true;
  // A parameter that would leave a rank fewer elements than these is not sharded: gathering it costs more
  // time than it saves memory.
  std::int64_t smallest_share = 1024;
  // Of a distribution whose stages have meshes of their own: by node of a plan, its stage. Asked for the plan, and for
  // the same with nodes opened.
  std::function<Result<std::vector<std::int32_t>>(const plan::Graph&)> stages = {};
};

// How the steps of a plan are cut in time. The plan is then of one stage's mesh, with the micro-batches as its
// last axis where there are several: pipeline/in_time.h makes it, pipeline/unroll.h makes of it what a rank runs.
struct InTime {
  Distribution distribution;  // of all ranks, with stages, micro-batches and schedule
  // By node: its place on a micro-batch's way through the stages; -1: wherever it is needed.
  std::vector<std::int32_t> position;
};

struct DistributedPlan {
  plan::Graph graph;
  plan::Mesh mesh;
  std::vector<plan::Layout> layouts;  // by value, as spmd::infer_layouts gives them
  // The nodes of the one-device plan that were opened. `origin` speaks of the plan with these open, as
  // open_nodes() makes it.
  std::vector<plan::NodeId> opened;
  // By node: the node of the one-device plan that it is, or that it moves a value for: the first reader of
  // what it makes, or, where that is an output or an update, the value's own.
  std::vector<plan::NodeId> origin;
  // By node: written otherwise than the plan of one device has it, by rules or by hand. Empty: none is.
  std::vector<bool> own = {};
  std::optional<InTime> time = {};

  // Of all ranks.
  const plan::Mesh& whole_mesh() const { return time ? time->distribution.mesh : mesh; }
  bool is_own(plan::NodeId node) const { return !own.empty() && own[node.value]; }
};

// Nodes keep their phase; one that moves a value is of the phase of the reader that it moves it for. Fails on
// an index or an axis that does not exist, on an exception that cannot be kept, and where exceptions
// contradict one another.
Result<DistributedPlan> distribute(const plan::Graph& graph, const Distribution& distribution,
                                   const DistributeOptions& options = {});

}  // namespace weft::distribute
