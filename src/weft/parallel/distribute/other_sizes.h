// weft/parallel/distribute/other_sizes.h -- translates sizes and constants to other sizes.
//
//   broadcast %14 {type=f32[a=1024]}   a node that rules added: a becomes 5 if the model's a of
//                                      1024 does
//   constant {value=4096}              the count of a mean over s and of another over d: rules
//                                      merged the two, but at s = 5, d = 3 they must differ
//   attention {divisor=8}              the divisor of the scores, a constant of the model: becomes
//                                      the root of another e
//
// The mapping comes from the single-device plan at its own sizes and at the others: corresponding
// values match.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weft/base/result.h"
#include "weft/parallel/distribute/concat_boundaries.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

class OtherSizes {
 public:
  // REQUIRES: both plans have the same nodes.
  OtherSizes(const plan::Graph& original, const plan::Graph& other);

  // The new size of an index of that size. Fails if it is ambiguous, or if the plan has no such
  // index.
  Result<std::int64_t> of(std::string_view index, std::int64_t size) const;
  // The new bounds of a slice of an index of that size, taken from the model's own such slice.
  Result<Stretch> of_slice(std::string_view index, std::int64_t size, Stretch slice) const;
  // The new value of a real attribute of a node: that of the model's constant that equals it.
  // Unchanged if the model has no such constant, or if no constant of that value changes. Fails if
  // it is ambiguous.
  Result<double> of_number(const plan::NodeView& node, std::size_t attribute) const;
  // Whether the node is not a constant but has a real attribute that changes at the other sizes.
  bool change_number(const plan::NodeView& node) const;

 private:
  using Slice = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

  std::map<Slice, std::set<std::pair<std::int64_t, std::int64_t>>> slices_;
  std::map<std::pair<std::string, std::int64_t>, std::set<std::int64_t>> known_;
  std::map<double, std::set<double>> numbers_;  // of constants
};

// Fails on the first node of a plan that reads one shared number where it would need a different
// one at the other sizes. `original`, `other`: the single-device plan at both, with the nodes
// decomposed that the plan decomposed.
Status check_numbers(const DistributedPlan& plan, const plan::Graph& original, const plan::Graph& other);

}  // namespace weft::distribute
