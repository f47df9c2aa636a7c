// weft/planner/search/distribution/rank_exchanges.h -- map tasks of the first rank to exchanges of a plan.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct RankExchange {
  plan::NodeId node;       // in the distributed plan
  std::uint32_t task = 0;  // in the program
};

struct RankExchanges {
  const sim::RankClass* ranks = nullptr;  // the class of rank 0; null: unknown
  std::vector<RankExchange> exchanges;    // in program order
};

// REQUIRES: the prediction was not made with `quick`; `before` outlives the result.
Result<RankExchanges> exchanges_of_first_rank(const PredictedPlan& before);

}  // namespace weft::search
