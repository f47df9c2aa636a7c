// weft/planner/search/distribution/rank_exchanges.h -- which tasks of the first rank are which exchanges of a plan.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct RankExchange {
  plan::NodeId node;       // of the plan of the mesh
  std::uint32_t task = 0;  // of the program
};

struct RankExchanges {
  const sim::RankClass* ranks = nullptr;  // with rank 0 among them; null: nothing is known of it
  std::vector<RankExchange> exchanges;    // in the program's order
};

// REQUIRES: the prediction is not a quick one; `before` outlives the answer.
Result<RankExchanges> exchanges_of_first_rank(const PredictedPlan& before);

}  // namespace weft::search
