// weft/runtime/measure/tune_check.h -- how well a table of choices foretold what was measured later.
//
//   size      predicted  measured
//   96 KiB    21.0 us    20.2 us      of every candidate at every size
//
//   error    |predicted / measured - 1|
//   cost     time of the algorithm that is chosen over that of the best - 1
//   as run   time of a communicator that chose by itself over that of one told to use that algorithm - 1
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/communication/comm/choice/choice.h"

namespace weft::measure {

struct TuneCheck {
  std::int64_t predictions = 0, choices = 0;
  double median_error = 0, median_cost = 0, mean_cost = 0, worst_cost = 0, as_run = 0;  // as_run: the median
  std::string worst;  // "all_reduce of 32 KiB: direct two-shot 14 us, direct one-shot 12 us"; empty: no cost
};

// What was found for one transport, number of ranks and kind of buffers.
struct TuneCheckRow {
  std::string transport;
  std::int32_t ranks = 0, hosts = 1;
  bool allocated = false;
  TuneCheck check;
};

struct TuneChecks {
  std::vector<TuneCheckRow> rows;
  TuneCheck all;
};

// `measured` holds times at sizes that `table` was not made from, kChosen among the candidates. Where the
// table has measured a setting, what it has not measured there is left out; else its formulas are judged.
TuneChecks check_predictions(const comm::ChoiceTable& table, const comm::ChoiceTable& measured);

}  // namespace weft::measure
