// weft/parallel/distribute/distribution.h -- how a model is spread over a mesh: the planner's decision in a few words.
//
//   node=4: slice b, shard parameters     batches across nodes; parameters are gathered before use (ZeRO-3)
//   gpu=8:  slice h, f, v, s              heads, hidden units and words within a node; what has none of
//                                         them is cut along the sequence (Megatron with sequence parallelism)
//
// On each mesh axis a node is cut along the first of the listed indices that it has as a loop which may be
// cut and has, after the cuts of outer axes, a step for every rank; a node that has none of them runs whole
// on every rank. What must be moved for that follows (distribute.h). The named kinds of parallelism are all
// such lists:
//
//   data            slice b                            sequence        slice h, f, v, s
//   tensor          slice h, f, v                      context         slice s   (ring attention: keys go around)
//   Ulysses         slice s; slice h of ctx on gpu     (of attention's own entry)
//   expert          slice x, b                         spatial         slice y   (rows of an image)
//   one weird trick slice f6, f7, b                    ZeRO-1, -3      slice b, shard optimizer | parameters
//
// A step may also be cut in time: along one axis the model's layers lie one after the other, and the batch
// goes through them in micro-batches, in the order that a schedule of schedules/ says.
//
//   stage=8: stage, chunks=2; data=16: slice b; gpu=8: slice h, f, v, s; micro=96; schedule interleaved
//
// Ranks that differ in speed may take unequal numbers of micro-batches, as many in all as equal ones would be:
//
//   data=2: slice b, micro-batches 5:3; micro=4         each is an eighth of the batch
//
// Stages may have meshes of their own, of as many ranks each. They are written one by one, or as what an axis that
// all have is used for in some of them (stage_meshes.h makes the second of the first):
//
//   stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: slice h, f, v
//   stage=2: stage; data=2: slice b; gpu=2: slice b, in stage 1 slice h, f, v
//
// and what the backward phase needs may be computed again rather than kept (train/recompute.h):
//
//   data=16: slice b; recompute selective, block.0; offload optimizer
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/train/recompute.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// Of what the ranks along an axis keep a slice each, where they would otherwise keep copies.
enum class Shard : std::uint8_t {
  nothing,
  optimizer,   // the optimizer's states; each rank updates its slice of a parameter (ZeRO-1 and -2)
  parameters,  // and the parameters themselves, gathered before every use (ZeRO-3)
};

std::string_view name(Shard shard);

// What some stages use an axis for, where it is not what the others do.
struct StageUse {
  std::int32_t first = 0, last = 0;  // stages, both of them included
  std::vector<std::string> slice = {};
  Shard shard = Shard::nothing;
  bool ring = false;

  friend bool operator==(const StageUse&, const StageUse&) = default;
};

struct AxisUse {
  std::vector<std::string> slice;  // indices, most wanted first
  Shard shard = Shard::nothing;
  bool ring = false;        // keys of attention go around, where its queries are sliced (spmd/ring.h)
  bool stage = false;       // its ranks hold layers one after the other; nothing is sliced or sharded on it
  std::int32_t chunks = 1;  // runs of layers that each of its ranks holds
  // How many micro-batches each of its ranks takes of a step, where some are faster than others; empty: all as many.
  std::vector<std::int64_t> takes = {};
  std::vector<StageUse> in_stages = {};  // in order, none twice; all other stages use it as is said above

  friend bool operator==(const AxisUse&, const AxisUse&) = default;
};

// What one tensor does on one axis, whatever the axis' list says: a source by its name, or the nodes of a
// label (an entry's name, with or without its scope: "scores", "block.3.scores").
struct Exception {
  std::string tensor, axis;
  std::string index;  // empty: replicated

  friend bool operator==(const Exception&, const Exception&) = default;
};

struct Distribution {
  plan::Mesh mesh;
  std::vector<AxisUse> axes;  // one for each axis of the mesh
  std::vector<Exception> exceptions;
  std::int64_t micro_batches = 1;  // that a step's batch is cut into; their gradients are summed
  std::string schedule = {};       // of a mesh with stages: a name of schedules/; empty: one_f_one_b
  // What of the forward pass is done again. The plan that is spread has the copies already: this names them.
  train::Recompute recompute = {};
  bool offload = false;  // the optimizer's states lie on the host, which updates there

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

// The mesh axis along which layers lie one after the other.
std::optional<std::size_t> stage_axis(const Distribution& distribution);
// Whether a step of it is cut in time: in stages or micro-batches, be it that numbers of these are lacking.
bool is_in_time(const Distribution& distribution);
// What one micro-batch is to the ranks of one stage: the same without the stages' axis and without time. An axis whose
// ranks take unequal numbers of micro-batches is the last: so the rows of those that one takes lie next to each other.
Distribution within_stage(const Distribution& distribution);
// The axes that it has, in that order, by their place in the whole mesh.
std::vector<std::size_t> axes_within_stage(const Distribution& distribution);

// Whether stages have meshes of their own; and the same where all have that of one of them.
bool has_stage_meshes(const Distribution& distribution);
Distribution as_in_stage(const Distribution& distribution, std::int32_t stage);

// "node=4: slice b, shard parameters; gpu=8: slice h, f, v, s; replicate w on gpu; slice d of x on node"
std::string print(const Distribution& distribution);
// The same text read. Fails, with the place, on what it is not.
Result<Distribution> read_distribution(std::string_view text);

}  // namespace weft::distribute
