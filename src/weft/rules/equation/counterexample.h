// weft/rules/equation/counterexample.h -- the smallest case found in which a rule fails.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/base/random.h"
#include "weft/rules/equation/legal_sizes.h"
#include "weft/rules/equation/trial.h"
#include "weft/rules/rule/verdict.h"

namespace weft::equation {

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
rule::Counterexample counterexample_at(Trial& trial, const PlacedSizes& failing, Random& random);

}  // namespace weft::equation
