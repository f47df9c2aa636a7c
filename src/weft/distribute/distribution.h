// weft/distribute/distribution.h -- how a model is spread over a mesh: the planner's decision in a few words.
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
//   tensor          slice h, f, v                      context         slice s
//   expert          slice x, b                         spatial         slice y   (rows of an image)
//   one weird trick slice f6, f7, b                    ZeRO-1, -3      slice b, shard optimizer | parameters
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/layout.h"

namespace weft::distribute {

// Of what the ranks along an axis keep a slice each, where they would otherwise keep copies.
enum class Shard : std::uint8_t {
  nothing,
  optimizer,   // the optimizer's states; each rank updates its slice of a parameter (ZeRO-1 and -2)
  parameters,  // and the parameters themselves, gathered before every use (ZeRO-3)
};

std::string_view name(Shard shard);

struct AxisUse {
  std::vector<std::string> slice;  // indices, most wanted first
  Shard shard = Shard::nothing;

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

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

// "node=4: slice b, shard parameters; gpu=8: slice h, f, v, s; replicate w on gpu; slice d of x on node"
std::string print(const Distribution& distribution);
// The same text read. Fails, with the place, on what it is not.
Result<Distribution> read_distribution(std::string_view text);

}  // namespace weft::distribute
