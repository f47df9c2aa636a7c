// weft/rules/rule/draw_sizes.h -- names and sizes for the index variables of a rule's instance.
//
// Names are small numbers. Two variables share one now and then, where no value of the left has both. Along
// an index that is concatenated or cut the inputs have sizes of their own; elsewhere they seldom do, since
// mostly nothing fits then. Sizes that operators tie together by arithmetic (channels = groups * inputs, a
// split's parts) are made to fit, so that these cases turn up often and not by luck alone.
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
  // `attributes` are what the rule's variables were given.
  // `wide`: one or two of the sizes are drawn from there, and the others stay small; null: all are small.
  IndexDraw(const Rule& rule, std::span<const plan::Attribute> attributes, Random& random,
            const InstanceOptions& options, const Breakpoints* wide = nullptr,
            std::span<const std::int64_t> ranks = {});

  const std::vector<std::vector<int>>& names() const { return names_; }  // by index variable
  const std::vector<std::int64_t>& sizes() const { return sizes_; }      // by name
  // Of an input: its names in memory order, each with a size.
  std::vector<std::pair<int, std::int64_t>> dims(std::size_t input);

 private:
  void draw_names();
  void share_names();
  bool may_share(int name, std::uint16_t variable) const;
  void draw_sizes(std::int64_t largest);
  void widen(const Breakpoints& wide);
  std::int64_t a_number() const;  // one that the rule's variables are bound to; 0: there is none
  std::int64_t draw_size(std::int64_t largest);
  std::int64_t most_fitted() const;  // an attribute that sizes are made to fit
  void fit(const PatternNode& node);
  void fit(const Condition& condition);
  std::int64_t value_of(const Number& number) const;  // of single indices, variables and literals; else 0
  // The name of the index at a place of a value's list, where that is a single one; else -1.
  int name_at(std::uint16_t value, std::size_t place) const;

  const Rule& rule_;
  std::span<const plan::Attribute> attributes_;
  std::span<const std::int64_t> ranks_;  // by variable: of the mesh axis that it names
  Random& random_;
  std::optional<InputIndex> apart_;
  const Breakpoints* wide_;
  std::vector<std::vector<int>> names_;
  std::vector<std::int64_t> sizes_;
  std::vector<bool> varies_;          // by name: inputs may differ along it
  std::vector<bool> fixed_;           // by name: another size would not fit an operator that was seen
  std::vector<std::uint64_t> order_;  // by name: which comes first, where all inputs have one order
  bool one_order_ = false;
  std::int64_t largest_ = 0;
};

}  // namespace weft::rule
