// weft/planner/search/tile/exposed_exchanges.h -- exposed share of each exchange.
//
//   compute   | product |          | product |         | product ------------ |
//   axis gpu            | exposed  |         | exposed | hidden |
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

// By node: the share of an exchange, from 0 to 1, during which the first rank does not compute; 0
// for nodes that exchange nothing. REQUIRES: the prediction was not made with `quick`.
Result<std::vector<double>> exposed_shares(const PredictedPlan& before);

}  // namespace weft::search
