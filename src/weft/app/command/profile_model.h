// weft/app/command/profile_model.h -- `weft profile --model`: what the operators of a model take on this machine.
//
//   weft profile --model char_gpt --with 'b = 8' --ranks 2
//
//   ranks   a step  predicted  units off by  now  distribution
//       1  30.8 ms
//       2  30.6 ms    30.3 ms          57 %  2 %  rank=2: slice b
//
// The step is run as EXPLAIN ANALYZE runs it, on one rank and on `ranks`, and what each unit and collective
// took goes to the statistics, where the next EXPLAIN finds it. Where it then chooses another plan, that one
// is run as well.
#pragma once
#include "weft/app/command/profile.h"
#include "weft/base/result.h"

namespace weft::command {

// REQUIRES: request.model is not empty
Result<std::string> profile_model(const Profile& request);

}  // namespace weft::command
