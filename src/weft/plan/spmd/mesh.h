// weft/plan/spmd/mesh.h -- runs a plan on a virtual mesh by the reference semantics.
//
//   WEFT_TRY(x, split_for_mesh(whole_x, type, layout, mesh, numbers, random));      // one tensor per rank
//   WEFT_TRY(outputs, interpret_on_mesh<Field>(graph, mesh, sources, numbers));
//   WEFT_TRY(y, join_from_mesh(outputs[0], y_type, mesh, numbers));                 // the whole again
//
// The counterpart of interpret() for distributed plans: slow, exact, and the reference. Shares are
// really sliced, addends really added, and each rank computes its own replicas. So a plan with
// wrong layouts gives different numbers than one device does.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/spmd/localize.h"

namespace weft::spmd {

// A value as the ranks of a mesh hold it.
template <class T>
struct MeshTensor {
  plan::Layout layout;
  std::vector<ops::Tensor<T>> ranks;  // one per rank, with its local sizes
};

// Looks up the value of an input, parameter or state by name; null if there is none. Its layout
// must be the source's. The tensors must outlive the call.
template <class T>
using MeshSources = std::function<const MeshTensor<T>*(std::string_view name)>;

// The most ranks of a virtual mesh. Larger meshes can be planned but not run this way.
constexpr std::int32_t kMaxVirtualRanks = 1024;

// A plan as every rank of the mesh runs it. Build it once to run it several times.
struct MeshPlan {
  std::vector<plan::Layout> layouts;  // by value
  std::vector<LocalPlan> ranks;
};

// Fails if infer_layouts or localize does.
Result<MeshPlan> plan_of_ranks(const plan::Graph& graph, const plan::Mesh& mesh);

// As below, with a MeshPlan built from this graph and mesh.
template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshPlan& ranks, const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers = {},
                                                     std::int64_t max_elements = ops::kMostElements);

// The plan's outputs, in order, with their layouts. Fails if infer_layouts or localize does, a
// source is missing, a rank's tensor has the wrong sizes, or a value would have more than
// `max_elements` over all ranks.
template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers = {},
                                                     std::int64_t max_elements = ops::kMostElements);

// A global value as the ranks would hold it: sliced or copied. A partial sum is split into random
// addends. An element of a partial max stays on one random rank and is at most that on the others
// (min likewise). If varying, the first rank along the axis holds the value, the others random
// ones.
template <class T>
Result<MeshTensor<T>> split_for_mesh(const ops::Tensor<T>& whole, const plan::Type& type,
                                     const plan::Layout& layout, const plan::Mesh& mesh,
                                     const ops::Numbers<T>& numbers, Random& random);

// The global value: shares concatenated, addends combined. Fails if replicas differ in any bit, a
// border differs from its neighbour's block, or a value is varying.
template <class T>
Result<ops::Tensor<T>> join_from_mesh(const MeshTensor<T>& held, const plan::Type& type,
                                      const plan::Mesh& mesh, const ops::Numbers<T>& numbers = {});

}  // namespace weft::spmd
