// weft/rules/rule/draw_sizes.h -- draws names and sizes for a rule's index variables.
//
// Names are small numbers. Two variables sometimes share one, if no value of the left has both.
// Along an index that is concatenated or sliced, inputs have different sizes; elsewhere they rarely
// do, since then the operands usually do not match. Sizes that operators tie together by arithmetic
// (channels = groups * inputs, a split's parts) are adjusted to match, so that these cases occur
// often and not only by chance.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/attribute.h"
#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

class IndexDraw {
 public:
  // `attributes`: the values of the rule's variables.
  // `wide`: the source of one or two large sizes, the others stay small; null: all are small.
  IndexDraw(const Rule& rule, std::span<const plan::Attribute> attributes, Random& random,
            const InstanceOptions& options, const Breakpoints* wide = nullptr,
            std::span<const std::int64_t> ranks = {});

  const std::vector<std::vector<int>>& names() const { return names_; }  // by index variable
  const std::vector<std::int64_t>& sizes() const { return sizes_; }      // by name
  // The dims of an input: names in memory order, with sizes.
  std::vector<std::pair<int, std::int64_t>> dims(std::size_t input);

 private:
  void draw_names();
  void share_names();
  bool may_share(int name, std::uint16_t variable) const;
  void draw_sizes(std::int64_t largest);
  void widen(const Breakpoints& wide);
  std::int64_t any_bound_integer() const;  // a bound integer variable's value; 0 if there is none
  std::int64_t draw_size(std::int64_t largest);
  std::int64_t most_fitted() const;  // the largest attribute to which sizes are adjusted
  void fit(const PatternNode& node);
  void fit(const Condition& condition);
  std::int64_t value_of(const Number& number) const;  // for single indices, variables and literals; else 0
  // The name of the index at a position of a value's list, if its variable stands for one index;
  // else -1.
  int name_at(std::uint16_t value, std::size_t place) const;

  const Rule& rule_;
  std::span<const plan::Attribute> attributes_;
  std::span<const std::int64_t> ranks_;  // by variable: size of the mesh axis it names
  Random& random_;
  std::optional<InputIndex> apart_;
  const Breakpoints* wide_;
  std::vector<std::vector<int>> names_;
  std::vector<std::int64_t> sizes_;
  std::vector<bool> varies_;          // by name: sizes may differ between inputs
  std::vector<bool> fixed_;           // by name: fixed by an operator seen before
  std::vector<std::uint64_t> order_;  // by name: sort key if all inputs have the same order
  bool one_order_ = false;
  std::int64_t largest_ = 0;
};

}  // namespace weft::rule
