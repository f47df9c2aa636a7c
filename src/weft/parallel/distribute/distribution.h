// weft/parallel/distribute/distribution.h -- how a model is distributed over a mesh.
//
//   node=4: slice b, shard parameters   batches across nodes; parameters are gathered before use
//                                       (ZeRO-3)
//   gpu=8:  slice h, f, v, s            heads, hidden units and vocabulary within a node; operators
//                                       without any of these are sliced along the sequence
//                                       (Megatron sequence parallelism)
//
// On each mesh axis a plan node is sliced along the first listed index that it has as a loop that
// may be sliced and that has, after the slices of outer axes, an iteration for every rank. A plan
// node without such a loop runs whole on every rank. The necessary communication follows
// (distribute.h). The known kinds of parallelism are such lists:
//
//   data            slice b                            sequence        slice h, f, v, s
//   tensor          slice h, f, v                      context         slice s   (ring attention)
//   Ulysses         slice s; slice h of ctx on gpu     (ctx: the entry of attention)
//   expert          slice x, b                         spatial         slice y   (rows of an image)
//   one weird trick slice f6, f7, b                    ZeRO-1, -3      slice b, shard optimizer | parameters
//
// A step may also be pipelined: along one axis the model's layers are split into consecutive
// stages, and the batch passes through them in micro-batches, in the order of a schedule from
// schedules/.
//
//   stage=8: stage, chunks=2; data=16: slice b; gpu=8: slice h, f, v, s; micro=96; schedule interleaved
//
// Ranks that differ in speed may process unequal numbers of micro-batches. The total is the same as
// with equal ones:
//
//   data=2: slice b, micro-batches 5:3; micro=4         each is an eighth of the batch
//
// Stages may have different meshes with the same number of ranks. They are written one by one, or
// as overrides of how some stages use a shared axis (stage_meshes.h turns the first form into the
// second):
//
//   stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: slice h, f, v
//   stage=2: stage; data=2: slice b; gpu=2: slice b, in stage 1 slice h, f, v
//
// What the backward phase needs may be recomputed instead of kept (train/recompute.h):
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

// What is sharded over the ranks of an axis instead of replicated.
enum class Shard : std::uint8_t {
  nothing,
  optimizer,   // optimizer states; each rank updates its slice of a parameter (ZeRO-1 and -2)
  parameters,  // and the parameters themselves, gathered before every use (ZeRO-3)
};

std::string_view name(Shard shard);

// How some stages use an axis, where that differs from the others.
struct StageUse {
  std::int32_t first = 0, last = 0;  // stages, inclusive
  std::vector<std::string> slice = {};
  Shard shard = Shard::nothing;
  bool ring = false;

  friend bool operator==(const StageUse&, const StageUse&) = default;
};

struct AxisUse {
  std::vector<std::string> slice;  // indices in order of preference
  Shard shard = Shard::nothing;
  bool ring = false;        // ring attention where queries are sliced (spmd/ring.h)
  bool stage = false;       // its ranks hold consecutive layers; nothing is sliced or sharded on it
  std::int32_t chunks = 1;  // virtual stages per rank
  // Micro-batches per step of each of its ranks, where some are faster than others; empty: all
  // equal.
  std::vector<std::int64_t> takes = {};
  std::vector<StageUse> in_stages = {};  // in order, without overlap; other stages use it as above

  friend bool operator==(const AxisUse&, const AxisUse&) = default;
};

// Overrides an axis' list for one tensor: a source by name, or the nodes of a label (an entry's
// name, with or without its scope: "scores", "block.3.scores").
struct Exception {
  std::string tensor, axis;
  std::string index;  // empty: replicated

  friend bool operator==(const Exception&, const Exception&) = default;
};

struct Distribution {
  plan::Mesh mesh;
  std::vector<AxisUse> axes;  // one per axis of the mesh
  std::vector<Exception> exceptions;
  std::int64_t micro_batches = 1;  // per step; their gradients are summed
  std::string schedule = {};       // with stages: a name from schedules/; empty: one_f_one_b
  // What of the forward pass is recomputed. The plan to distribute already has the copies; this
  // names them.
  train::Recompute recompute = {};
  bool offload = false;  // the optimizer's states are kept on the host, which updates there

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

// The mesh axis of the pipeline stages.
std::optional<std::size_t> stage_axis(const Distribution& distribution);
// Whether its steps use pipeline stages or micro-batches, even if their numbers are not set.
bool is_pipelined(const Distribution& distribution);
// The distribution of one micro-batch over the ranks of one stage: without the stage axis,
// micro-batches and schedule. An axis with unequal numbers of micro-batches per rank becomes the
// last, so that the rows of one rank are adjacent.
Distribution within_stage(const Distribution& distribution);
// Its axes in that order, as axis numbers of the whole mesh.
std::vector<std::size_t> axes_within_stage(const Distribution& distribution);

// Whether stages have different meshes; and the distribution with every stage as this one.
bool has_stage_meshes(const Distribution& distribution);
Distribution as_in_stage(const Distribution& distribution, std::int32_t stage);

// "node=4: slice b, shard parameters; gpu=8: slice h, f, v, s; replicate w on gpu; slice d of x on node"
std::string print(const Distribution& distribution);
// Reads text that print() writes. On a syntax error it fails with the position.
Result<Distribution> read_distribution(std::string_view text);
// Whether the text uses the former word `takes` for micro-batches.
bool has_former_words(std::string_view text);

}  // namespace weft::distribute
