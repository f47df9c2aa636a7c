// weft/rules/equation/legal_sizes.h -- draws sizes at which a rule's source is well typed.
//
// From a random start, a short local search repairs one violated condition after another (as
// WalkSAT does for clauses): it chooses a convolution's groups and resizes its weight, or adjusts
// the last addend of a concat. The result is only a proposal: EquationSide::prepare() decides.
//
// Starting points alternate. Sizes vary as much as the rule allows (size 1, non-square images,
// separate batches), but coincidences that hide bugs occur as well:
//   like the example   dims that are equal there stay equal
//   independent        every unknown is drawn separately
//   mixed              some of each
// and convolutions are grouped or depthwise every other time.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/random.h"
#include "weft/rules/equation/unknown_sizes.h"

namespace weft::equation {

class LegalSizes {
 public:
  LegalSizes(const Equation& equation, SizeConditions conditions);

  const SizeConditions& conditions() const { return conditions_; }
  // Adds conditions, such as a guard, for the sizes drawn from now on.
  void require(std::span<const SizeCondition> more);

  // Sizes of at most `largest`; nullopt if the search failed. `turn` is the number of the draw and
  // selects the starting point.
  std::optional<InputSizes> draw(Random& random, std::int32_t turn, std::int64_t largest) const;

 private:
  std::vector<std::int64_t> begin(Random& random, std::int32_t turn, std::int64_t largest) const;
  void widen(Random& random, std::vector<std::int64_t>& values) const;
  void group(Random& random, std::vector<std::int64_t>& values, const SizeCondition& convolution,
             bool apart) const;
  bool mend(Random& random, std::vector<std::int64_t>& values, const SizeCondition& condition,
            std::int64_t largest) const;
  bool set(Random& random, std::vector<std::int64_t>& values, const Linear& size, std::int64_t wanted) const;

  std::size_t head(std::int32_t unknown) const { return heads_[static_cast<std::size_t>(unknown)]; }
  Linear headed(const Linear& size) const;
  void join();

  SizeConditions conditions_;
  std::vector<bool> small_;          // unknowns that are kernel sizes
  std::vector<std::size_t> heads_;   // representative of unknowns that must be equal
  std::vector<std::int64_t> fixed_;  // required value of a head; 0: any
  std::vector<SizeCondition> open_;  // remaining conditions, in terms of heads
};

}  // namespace weft::equation
