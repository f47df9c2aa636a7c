// weft/parallel/distribute/convert.h -- the cheapest way from one layout of a value to another.
//
//   partial(sum) on node and gpu  ->  replicated
//
//     gpu   reduce-scatter                 all-gather        each rank of a node sums an eighth across
//     node                    all-reduce                     the nodes: an eighth of the bytes go there
//
// The layouts a value can pass through are few: on each axis what it has, what it shall have, replicated, and
// for addends a slice of their sum. One communication leads from layout to layout along one axis; the
// shortest path by price is the conversion. An index that is cut on two axes is cut on the outer one first
// and joined there last, as spmd::infer_layouts demands. Borders are fetched last, from blocks without any.
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

// A mesh of more axes has too many ways from layout to layout.
constexpr std::size_t kMostAxes = 6;

// One communication: what the axis holds afterwards.
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
  // `prices`: one for each axis, or none. REQUIRES: the mesh has at most kMostAxes; it outlives this.
  Converter(const plan::Mesh& mesh, std::span<const AxisPrice> prices);

  // Null when there is no way: nothing becomes an addend, and values of ranks' own become nothing. Stays
  // valid while the converter lives. `type` is told from others by `id`.
  const Conversion* find(plan::TypeId id, const plan::Type& type, const plan::Layout& from,
                         const plan::Layout& to);

 private:
  using Key = std::tuple<std::uint32_t, std::vector<std::uint64_t>>;

  const plan::Mesh& mesh_;
  std::vector<AxisPrice> prices_;
  std::map<Key, Conversion> known_;  // seconds < 0: no way
};

// Adds the step's communication.
Result<plan::ValueId> add_step(plan::Graph& graph, plan::ValueId value, const plan::Mesh& mesh,
                               const Step& step);

}  // namespace weft::distribute
