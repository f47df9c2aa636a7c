// weft/rules/equation/unknown_sizes.h -- sizes as unknowns, and the conditions on them.
//
//   ewadd(matmul(i1, i4), i2):   size(i1, 1) = size(i4, 0)
//                                size(i1, 0) = size(i2, 0)
//                                size(i4, 1) = size(i2, 1)
//
// Every dim of every input is an unknown. The sizes of results are sums of unknowns, or fresh
// unknowns if a window or a slice determines the size. The conditions guide the search for legal
// sizes, and guards are built from them. Whether sizes are legal is always decided by
// EquationSide::prepare().
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/equation/equation_side.h"

namespace weft::equation {

// constant + sum of factor * unknown
struct Linear {
  std::int64_t constant = 0;
  std::vector<std::pair<std::int32_t, std::int64_t>> terms;  // (unknown, factor), sorted, factors nonzero

  bool is_unknown() const { return constant == 0 && terms.size() == 1 && terms[0].second == 1; }
  std::int64_t at(std::span<const std::int64_t> values) const;
  friend bool operator==(const Linear&, const Linear&) = default;
  friend auto operator<=>(const Linear&, const Linear&) = default;
};

Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);
Linear operator*(const Linear& a, std::int64_t factor);

struct SizeCondition {
  enum class Kind : std::uint8_t {
    equal,     // a = b
    at_least,  // a >= b
    grouped,   // a image channels, b weight channels, c outputs: b divides a, a / b divides c
    windows,   // a is the number of windows of size b that fit into c
    slice,     // a is a slice of b, over `parts` ranks
    divides,   // `parts` divides a
  };
  Kind kind = Kind::equal;
  Linear a, b, c;
  std::int32_t parts = 1, stride = 1;
  bool same_padding = true;

  bool holds(std::span<const std::int64_t> values) const;
  // Whether it only involves unknowns below `limit`.
  bool only_below(std::int32_t limit) const;
  friend bool operator==(const SizeCondition&, const SizeCondition&) = default;
};

struct SizeConditions {
  std::vector<std::vector<std::int32_t>> dims;  // the unknown of each dim of each input
  std::int32_t inputs = 0, unknowns = 0;        // unknowns that are input dims; all, with fresh ones
  std::vector<std::int64_t> example;            // a value per unknown
  std::vector<SizeCondition> all;

  // The values of the unknowns that are input dims, the others set to 1.
  std::vector<std::int64_t> values_of(const InputSizes& sizes) const;
  InputSizes sizes_at(std::span<const std::int64_t> values) const;
};

// The conditions of one side; for the source also the conventions of the rule's origin. Fails if
// the side is ill-typed at all sizes; `example` need not be legal.
Result<SizeConditions> conditions_of(const Equation& equation, Which which, std::int32_t ranks);

// The conditions that only involve input dims, whose unknowns are the same on both sides.
std::vector<SizeCondition> conditions_on_inputs(const SizeConditions& conditions);

// "size(i1, 1) = size(i4, 0)"; empty if the condition involves more than input dims.
std::string print(const SizeCondition& condition, const SizeConditions& conditions, const Equation& equation);

}  // namespace weft::equation
