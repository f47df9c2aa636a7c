// weft/session/tune_check.h -- how well a table of choices foretold what was then measured.
//
//   size      predicted  measured     error = |predicted / measured - 1|, of every candidate at every size
//   96 KiB    21.0 us    20.2 us      cost  = measured time of the choice over that of the best - 1
#pragma once
#include <cstdint>

#include "weft/comm/choice.h"

namespace weft::session {

struct TuneCheck {
  std::int64_t predictions = 0, choices = 0;
  double median_error = 0, median_cost = 0, mean_cost = 0, worst_cost = 0;
};

// `measured` holds times at sizes that `table` was not made from. What either lacks is left out.
TuneCheck check_predictions(const comm::ChoiceTable& table, const comm::ChoiceTable& measured);

}  // namespace weft::session
