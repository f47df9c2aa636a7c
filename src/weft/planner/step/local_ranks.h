// weft/planner/step/local_ranks.h -- options for starting the ranks of a statement on this machine.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/planner/statement/prepare.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {

// Threads are divided among ranks, and ranks run the algorithms that the prediction assumed. For
// ranks on several hosts only their number is known here, so the communicator chooses algorithms
// unless the user set them.
Result<run::LocalRanksOptions> local_ranks_of(const Prepared& prepared, const sim::Prediction& priced);

// The folder for spilled tensors: that of the checkpoint; empty: that of temporary files.
std::string spill_folder_of(const Settings& settings);

}  // namespace weft::planner
