// weft/planner/step/local_ranks.h -- how the ranks of a planned statement are started on this machine.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/planner/statement/prepare.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {

// How the ranks of a statement are started: threads are shared out among them, and they run the algorithms that
// were priced. Of ranks of several hosts nothing is known here but their number: there the communicator
// chooses, unless algorithms were asked for.
Result<run::LocalRanksOptions> local_ranks_of(const Prepared& prepared, const sim::Prediction& priced);

// Where a rank's memory goes that does not fit: beside the checkpoint; empty: where temporary files do.
std::string spill_folder_of(const Settings& settings);

}  // namespace weft::planner
