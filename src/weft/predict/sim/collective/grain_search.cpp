#include "weft/predict/sim/collective/grain_search.h"

#include <set>

namespace weft::sim {

Status search_grains(std::span<const Grain> starts, double most_work,
                     const std::function<Result<GrainTrial>(const Grain&)>& attempt) {
  std::set<Grain> tried;
  Grain best = starts.front();
  double attained = 0, work = 0;
  bool enough = false;
  // Returns whether it is the best so far.
  const auto attempt_one = [&](const Grain& grain) -> Result<bool> {
    if (enough || work > most_work || !tried.insert(grain).second) return false;
    WEFT_TRY(trial, attempt(grain));
    work += trial.work;
    enough = trial.enough;
    if (trial.attained <= attained) return false;
    attained = trial.attained;
    best = grain;
    return true;
  };
  for (const Grain& start : starts) WEFT_TRY_STATUS(attempt_one(start));
  for (bool better = true; better;) {
    better = false;
    const Grain from = best;
    for (const Grain& near : {Grain{from.chunk_bytes / 2, from.connection_rate},
                              Grain{from.chunk_bytes, from.connection_rate * 2},
                              Grain{from.chunk_bytes, from.connection_rate / 2},
                              Grain{from.chunk_bytes * 2, from.connection_rate}}) {
      WEFT_TRY(is_better, attempt_one(near));
      better = better || is_better;
    }
  }
  return {};
}

}  // namespace weft::sim
