// weft/predict/sim/collective/grain_search.h -- searches the chunk size of a synthesized program.
//
//   chunk bytes      small chunks fill and drain trees quickly, large ones amortize the cost per message
//   connection rate  many slow connections keep links busy, few fast ones deliver a chunk sooner
//
// The best choice depends on the depth of the trees and the rate of the links. So the search tries
// some grains, then half and double of each value of the best one, until none is better or the work
// limit is reached. Work is counted instead of timed, so that results are deterministic.
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
  double work = 0;      // simulated chunks times links
  bool enough = false;  // good enough: stop the search
};

// `attempt` keeps the best program. Fails if a trial fails.
Status search_grains(std::span<const Grain> starts, double most_work,
                     const std::function<Result<GrainTrial>(const Grain&)>& attempt);

}  // namespace weft::sim
