// weft/planner/search/codec/choose_codecs.h -- choose the exchanges to encode and their codecs.
//
//   gradients: int8 or int4      38.6 MB  9.4 MB  2.4 MB  2.4 MB  12 KB  12 KB ..
//                                |-- int4 ----------------------|  uncoded: encoding takes longer
//
// Encoding costs compute time, and a sum in two hops costs more calls, so it pays for large
// messages on slow links. For each kind, gradients first, one codec encodes all exchanges from a
// size on. A few sizes and every allowed codec are tried by simulating the plan. The fastest is
// used if it is faster than the plan without codecs. With `always`, exchanges are encoded even if
// that is slower: the fastest codec encodes everything it can.
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
  double memory_bytes = 0;  // limit per rank; 0: no limit
  // The step time after all later planner stages; null: use the simulated time.
  std::function<Result<double>(const PredictedPlan&)> finished = {};
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

struct ChosenCodecs {
  std::optional<PredictedPlan> plan;  // none: nothing is encoded
  std::vector<CodedExchanges> exchanges;
};

// Size thresholds to try, from the largest exchange only to all exchanges. They are few, since each
// is simulated. With `always`, only the threshold that includes all.
std::vector<std::int64_t> sizes_to_try(std::vector<std::int64_t> bytes, bool always);

// REQUIRES: the plan has no stages or micro-batches. Fails if required codecs do not fit in memory.
Result<ChosenCodecs> choose_codecs(const PredictedPlan& before, const Machine& machine, const Codecs& codecs,
                                   const ChooseCodecsOptions& options = {});

}  // namespace weft::search
