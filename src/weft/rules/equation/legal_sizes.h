// weft/rules/equation/legal_sizes.h -- draws sizes at which a rule's source makes sense.
//
// From random beginnings a short walk mends one broken condition after another (as WalkSAT does for
// clauses): a convolution's groups are chosen and its weight made to fit, the last addend of a concat is
// given what is missing. What comes out is only a proposal: EquationSide::prepare() decides.
//
// Beginnings alternate, so that sizes are as different as the rule allows (size 1, images that are not
// square, batches of their own) yet coincidences that rules like to hide in turn up as well:
//   like the example   dims that are equal there stay equal
//   on their own       every unknown by itself
//   mixed              some so, some so
// and every other time convolutions are grouped or depthwise.
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
  // Asks for more of the sizes drawn from now on: a guard.
  void require(std::span<const SizeCondition> more);

  // Sizes at most `largest`; none when the walk did not get there. Draw number `turn` sets the beginning.
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
  std::vector<bool> small_;          // unknowns that are kernels
  std::vector<std::size_t> heads_;   // of the unknowns that a condition makes equal, one
  std::vector<std::int64_t> fixed_;  // the number that a head must be; 0: any
  std::vector<SizeCondition> open_;  // what is left to mend, in terms of heads
};

}  // namespace weft::equation
