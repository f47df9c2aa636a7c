// weft/rules/equation/rounding.h -- how floating point fares where real numbers agree.
//
//   exact          both sides give the same bits on random reals
//   reassociates   other bits, but as many products and quotients: sums or products were regrouped
//   changes        another number of products or quotients: (x + y) * s became x * s + y * s, a division
//                  by nine a product with a ninth
//
// Bits are compared, products and quotients counted in the plans of both sides at the sizes given. A rule
// said to be exact was so on all draws; one that moves a factor and happens to keep the count is taken
// for a regrouping.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/equation/trial.h"
#include "weft/rules/rule/verdict.h"

namespace weft::equation {

// REQUIRES: both sides are equal at these instances, of which there is at least one.
rule::Rounding classify_rounding(const Equation& equation, std::span<const Instance> instances,
                                 Random& random);

}  // namespace weft::equation
