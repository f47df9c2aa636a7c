// weft/rules/equation/size_guard.h -- finds the condition on sizes under which a rule holds.
//
//   tried at                   held?
//   i7[1,4,3,5] i10[4,1,3,3]   no      all failures have groups, all successes have none:
//   i7[2,3,2,2] i10[6,3,3,3]   yes     groups(i10) = 1
//
// Atoms are the conditions a guard may use: a convolution has one group, two sizes are equal, a
// size is 1 or divisible, and the conditions of the target's own typing. A guard is a conjunction
// of atoms that holds at the rule's example, is false at every failure, and is true as often as
// possible elsewhere.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/rules/equation/unknown_sizes.h"

namespace weft::equation {

// One choice of sizes: the values of the unknowns that are input dims.
struct SizeSample {
  std::vector<std::int64_t> values;
  std::int32_t ranks = 1;
};

struct GuardAtom {
  SizeCondition condition;
  std::string text;
  std::int32_t cost = 1;     // more informative atoms cost less
  bool about_ranks = false;  // the condition's `parts` is the rank count
};

bool holds(const GuardAtom& atom, const SizeSample& sample);
SizeCondition condition_on(const GuardAtom& atom, std::int32_t ranks);

struct SizeGuard {
  std::vector<GuardAtom> atoms;

  bool holds(const SizeSample& sample) const;
  std::string text() const;  // "groups(i10) = 1 and size(i7, 0) = size(i8, 0)"
};

std::vector<GuardAtom> guard_atoms(const Equation& equation, const SizeConditions& source,
                                   const SizeConditions* target);

// nullopt if no conjunction of atoms excludes all failures.
std::optional<SizeGuard> find_guard(std::span<const GuardAtom> atoms, const SizeSample& example,
                                    std::span<const SizeSample> good, std::span<const SizeSample> bad);

}  // namespace weft::equation
