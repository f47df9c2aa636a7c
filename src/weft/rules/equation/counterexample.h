// weft/rules/equation/counterexample.h -- finds the smallest case in which a rule fails.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/base/random.h"
#include "weft/rules/equation/legal_sizes.h"
#include "weft/rules/equation/trial.h"
#include "weft/rules/rule/verdict.h"

namespace weft::equation {

// Sizes, and the number of ranks of the mesh.
struct PlacedSizes {
  InputSizes sizes;
  std::int32_t ranks = 1;
};

std::int64_t elements_in(const InputSizes& sizes);

// Tries small sizes in ascending order, then decrements sizes as long as the rule still fails.
// `failing`: sizes at which it failed.
PlacedSizes smallest_failure(Trial& trial, const LegalSizes& legal, const PlacedSizes& failing,
                             Random& random);

// Small integers for which the two sides differ at those sizes, or why a side fails.
rule::Counterexample counterexample_at(Trial& trial, const PlacedSizes& failing, Random& random);

}  // namespace weft::equation
