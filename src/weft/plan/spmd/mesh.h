// weft/plan/spmd/mesh.h -- runs a plan on a virtual mesh: every rank's share by the reference semantics, and the
// communication between the ranks' arrays.
//
//   WEFT_TRY(x, split_for_mesh(whole_x, type, layout, mesh, numbers, random));      // a tensor a rank
//   WEFT_TRY(outputs, interpret_on_mesh<Field>(graph, mesh, sources, numbers));
//   WEFT_TRY(y, join_from_mesh(outputs[0], y_type, mesh, numbers));                 // the whole again
//
// What interpret() is to a plan, this is to a distributed one: slow, exact, and the judge. Shares are really
// cut, addends really added, replicas computed by each rank on its own, so a plan whose layouts promise too
// much gives other numbers than one device does.
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
  std::vector<ops::Tensor<T>> ranks;  // one for each rank, of its local sizes
};

// The value of an input, parameter or state by its name; null when there is none. Its layout must be
// the source's. The tensors must outlive the call.
template <class T>
using MeshSources = std::function<const MeshTensor<T>*(std::string_view name)>;

// More ranks than these are a mesh to plan for, not one to imitate.
constexpr std::int32_t kMostVirtualRanks = 1024;

// A plan as every rank of the mesh runs it. What runs it several times makes it once.
struct MeshPlan {
  std::vector<plan::Layout> layouts;  // by value
  std::vector<LocalPlan> ranks;
};

// Fails where infer_layouts or localize does.
Result<MeshPlan> plan_of_ranks(const plan::Graph& graph, const plan::Mesh& mesh);

// As below, of a plan that was made for the ranks of this very graph and mesh.
template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshPlan& ranks, const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers = {},
                                                     std::int64_t most_elements = ops::kMostElements);

// The plan's outputs, in order, with the layouts they have. Fails where infer_layouts or localize does, when
// a source is missing or a rank's tensor has other sizes than its share, or a value would have more than
// `most_elements` over all ranks.
template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers = {},
                                                     std::int64_t most_elements = ops::kMostElements);

// A global value as the ranks would hold it: cut where sliced, copied where replicated. Where partial, split
// in random addends (sum), or left on one rank at random and lessened on the others (max; min likewise).
// Where varying, the first rank along the axis holds the value and the others random ones of their own.
template <class T>
Result<MeshTensor<T>> split_for_mesh(const ops::Tensor<T>& whole, const plan::Type& type,
                                     const plan::Layout& layout, const plan::Mesh& mesh,
                                     const ops::Numbers<T>& numbers, Random& random);

// The global value: shares laid end to end, addends combined. Fails when replicas differ in a bit, a border
// is not its neighbour's, or where the ranks hold values of their own.
template <class T>
Result<ops::Tensor<T>> join_from_mesh(const MeshTensor<T>& held, const plan::Type& type,
                                      const plan::Mesh& mesh, const ops::Numbers<T>& numbers = {});

}  // namespace weft::spmd
