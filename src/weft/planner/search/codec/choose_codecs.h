// weft/planner/search/codec/choose_codecs.h -- which exchanges are coded, and by which of the codecs that are allowed.
//
//   gradients: int8 or int4      38.6 MB  9.4 MB  2.4 MB  2.4 MB  12 KB  12 KB ..
//                                |-- int4 ----------------------|  as they are: their codes take longer than they do
//
// Coding costs computing, and a sum in two hops more calls: it pays for what is large on slow wires. For each kind,
// gradients first, all exchanges from a size on are coded by one codec: a few such sizes and every codec are tried, each
// plan is simulated, and the quickest stands if it is quicker than the plan without. Where a codec is asked for `always`
// that is left out of question, and the quickest codec codes whatever it can.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/codec/place_codecs.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct ChooseCodecsOptions {
  double memory_bytes = 0;  // that a rank may take; 0: no limit
  // What the step of a plan takes once all that comes after codecs was done to it; null: as it is simulated.
  std::function<Result<double>(const PredictedPlan&)> finished = {};
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

struct ChosenCodecs {
  std::optional<PredictedPlan> plan;  // none: nothing is coded
  std::vector<CodedExchanges> exchanges;
};

// Sizes from which on exchanges may be coded, from the largest of these to all of them: a few, since each of them is
// simulated. Where nothing but all of them will do, that alone.
std::vector<std::int64_t> sizes_to_try(std::vector<std::int64_t> bytes, bool always);

// REQUIRES: the plan is not cut in time. Fails where what must be coded does not fit into memory.
Result<ChosenCodecs> choose_codecs(const PredictedPlan& before, const Machine& machine, const Codecs& codecs,
                                   const ChooseCodecsOptions& options = {});

}  // namespace weft::search
