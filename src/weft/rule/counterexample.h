// weft/rule/counterexample.h -- the smallest case found in which a rule fails.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/base/random.h"
#include "weft/rule/legal_sizes.h"
#include "weft/rule/trial.h"
#include "weft/rule/verdict.h"

namespace weft::rule {

// Sizes on a mesh of `ranks`.
struct PlacedSizes {
  InputSizes sizes;
  std::int32_t ranks = 1;
};

std::int64_t elements_in(const InputSizes& sizes);

// Looks among small sizes, upwards, then takes one from this and that size as long as the rule still
// fails. `failing` is where it did.
PlacedSizes smallest_failure(Trial& trial, const LegalSizes& legal, const PlacedSizes& failing,
                             Random& random);

// Small whole numbers on which the two sides differ there, or what else is wrong with them.
Counterexample counterexample_at(Trial& trial, const PlacedSizes& failing, Random& random);

}  // namespace weft::rule
