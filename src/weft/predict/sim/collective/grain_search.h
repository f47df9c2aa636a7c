// weft/predict/sim/collective/grain_search.h -- how finely a synthesized program is cut.
//
//   chunk bytes      small ones fill and drain trees quickly, large ones hide what a message costs
//   connection rate  many slow connections keep links busy, few fast ones bring a chunk sooner
//
// Which is worth more depends on the depth of the trees and the pace of the links. So grains are tried, and from the
// best of them halves and doubles of either, until none is better or so much work was done. It is counted, not timed,
// so that the same question has the same answer.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "weft/base/result.h"

namespace weft::sim {

struct Grain {
  double chunk_bytes = 0, connection_rate = 0;

  friend auto operator<=>(const Grain&, const Grain&) = default;
};

struct GrainTrial {
  double attained = 0;  // bytes per second
  double work = 0;      // chunks over links that were simulated
  bool enough = false;  // no better one is looked for
};

// Whoever tries a grain keeps the best program. Fails where a trial does.
Status search_grains(std::span<const Grain> starts, double most_work,
                     const std::function<Result<GrainTrial>(const Grain&)>& attempt);

}  // namespace weft::sim
