// weft/planner/search/tile/exposed_exchanges.h -- what computing waits for, by exchange.
//
//   compute   | product |          | product |         | product ------------ |
//   axis gpu            | exposed  |         | exposed | hidden |
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

// By node of the plan: which part of an exchange the first rank spends without computing, from 0 to 1; 0 where a
// node exchanges nothing. REQUIRES: the prediction is not a quick one.
Result<std::vector<double>> exposed_shares(const PredictedPlan& before);

}  // namespace weft::search
