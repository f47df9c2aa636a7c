// weft/rules/equation/rounding.h -- how two equal sides differ in floating point.
//
//   exact          both sides give the same bits on random reals
//   reassociates   different bits, but as many products and quotients: sums or products were
//                  regrouped
//   changes        a different number of products or quotients: (x + y) * s became x * s + y * s, a
//                  division by nine a product with a ninth
//
// Bits are compared, and products and quotients counted, in the plans of both sides at the sizes
// given. A rule classified as exact was exact on all draws. One that moves a factor and happens to
// keep the count is classified as a regrouping.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/equation/trial.h"
#include "weft/rules/rule/verdict.h"

namespace weft::equation {

// REQUIRES: both sides are equal at these instances, and there is at least one.
rule::Rounding classify_rounding(const Equation& equation, std::span<const Instance> instances,
                                 Random& random);

}  // namespace weft::equation
