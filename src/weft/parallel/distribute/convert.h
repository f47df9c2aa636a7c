// weft/parallel/distribute/convert.h -- the cheapest conversion between two layouts.
//
//   partial(sum) on node and gpu  ->  replicated
//
//     gpu   reduce-scatter                 all-gather        each rank of a node sums an eighth across
//     node                    all-reduce                     the nodes: only an eighth of the bytes
//
// A value can pass through few layouts: per axis the one it has, the one it needs, replicated, and
// for partial sums a slice of the sum. One collective changes the layout along one axis; the
// conversion is the shortest path by cost. An index sliced on two axes is sliced on the outer axis
// first and joined there last, as spmd::infer_layouts requires. Halos are fetched last, from blocks
// without any.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// With more axes there are too many paths between layouts.
constexpr std::size_t kMostAxes = 6;

// One collective; `to` is the layout on the axis afterwards.
struct Step {
  std::size_t axis = 0;
  plan::AxisLayout from, to;

  bool gathers() const { return from.is_sliced() && to.is_replicated(); }

  friend bool operator==(const Step&, const Step&) = default;
};

struct Conversion {
  std::vector<Step> steps;  // in order
  double seconds = 0;
};

class Converter {
 public:
  // `prices`: one per axis, or empty. REQUIRES: the mesh has at most kMostAxes axes and outlives
  // this.
  Converter(const plan::Mesh& mesh, std::span<const AxisCost> prices);

  // Null if there is no conversion: nothing converts to partial sums, and varying values convert to
  // nothing. The pointer is valid for the converter's lifetime. `id` identifies `type`.
  const Conversion* find(plan::TypeId id, const plan::Type& type, const plan::Layout& from,
                         const plan::Layout& to);

 private:
  using Key = std::tuple<std::uint32_t, std::vector<std::uint64_t>>;

  const plan::Mesh& mesh_;
  std::vector<AxisCost> prices_;
  std::map<Key, Conversion> known_;  // seconds < 0: no conversion
};

// Adds the collective of the step.
Result<plan::ValueId> add_step(plan::Graph& graph, plan::ValueId value, const plan::Mesh& mesh,
                               const Step& step);

}  // namespace weft::distribute
