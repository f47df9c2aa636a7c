// weft/parallel/distribute/other_sizes.h -- what the sizes and numbers of a plan become at other sizes.
//
//   broadcast %14 {type=f32[a=1024]}     a node that rules wrote: a is 5 where the model's a of 1024 is
//   constant {value=4096}                the count of a mean over s, and of another over d: rules have made one
//                                        of the two, and at s = 5, d = 3 it cannot be both
//   attention {divisor=8}                what scores were divided by, a constant of the model: the root of another e
//
// The plan of one device says so, at its own sizes and at the others: its values are the same ones in both.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/seams.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

class OtherSizes {
 public:
  // REQUIRES: both have the same nodes.
  OtherSizes(const plan::Graph& original, const plan::Graph& other);

  // What an index of that size becomes. Fails where it becomes several things, or none of the plan has it.
  Result<std::int64_t> of(std::string_view index, std::int64_t size) const;
  // What a slice from `begin` to `end` of an index of that size becomes: what the model's own becomes there.
  Result<Stretch> of_slice(std::string_view index, std::int64_t size, Stretch slice) const;
  // What a number becomes that a node states (a real attribute): that of the model's constant that it was. As it is where
  // nobody stated it, or no constant of that value changes. Fails where they become several.
  Result<double> of_number(const plan::NodeView& node, std::size_t attribute) const;
  // Whether the node states a number, not being a constant, that is another at the other sizes.
  bool change_number(const plan::NodeView& node) const;

 private:
  using Slice = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

  std::map<Slice, std::set<std::pair<std::int64_t, std::int64_t>>> slices_;
  std::map<std::pair<std::string, std::int64_t>, std::set<std::int64_t>> known_;
  std::map<double, std::set<double>> numbers_;  // of constants
};

// Fails on the first node of a plan that reads one number where at the other sizes it should read another.
// `original`, `other`: the plan of one device at both, with the nodes open that the plan opened.
Status check_numbers(const DistributedPlan& plan, const plan::Graph& original, const plan::Graph& other);

}  // namespace weft::distribute
