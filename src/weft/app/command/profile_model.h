// weft/app/command/profile_model.h -- `weft profile --model`: times of a model's operators.
//
//   weft profile --model char_gpt --with 'b = 8' --ranks 2
//
//   ranks   a step  predicted  units off by  now  distribution
//       1  30.8 ms
//       2  30.6 ms    30.3 ms          57 %  2 %  rank=2: slice b
//
// Runs the step as EXPLAIN ANALYZE does, on one rank and on `ranks`. The time of each unit and
// collective is saved in the statistics, which the next EXPLAIN reads. If EXPLAIN then chooses
// another plan, that plan is run as well.
#pragma once
#include "weft/app/command/profile.h"
#include "weft/base/result.h"

namespace weft::command {

// REQUIRES: request.model is not empty
Result<std::string> profile_model(const Profile& request);

}  // namespace weft::command
