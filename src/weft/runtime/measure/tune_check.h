// weft/runtime/measure/tune_check.h -- compares a choice table's predictions with later measurements.
//
//   size      predicted  measured
//   96 KiB    21.0 us    20.2 us      for every candidate at every size
//
//   error    |predicted / measured - 1|
//   cost     time of the chosen algorithm / time of the best - 1
//   as run   time with the communicator's own choice / time with that algorithm requested - 1
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/communication/comm/choice/choice.h"

namespace weft::measure {

struct TuneCheck {
  std::int64_t predictions = 0, choices = 0;
  double median_error = 0, median_cost = 0, mean_cost = 0, worst_cost = 0, as_run = 0;  // as_run: median
  std::string worst;  // "all_reduce of 32 KiB: direct two-shot 14 us, direct one-shot 12 us"; empty: none
};

// Results for one transport, number of ranks and kind of buffers.
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

// `measured` holds times at sizes that `table` was not built from, with kChosen among the
// candidates. If the table has measurements for a setting, candidates without them are skipped;
// otherwise its formulas are checked.
TuneChecks check_predictions(const comm::ChoiceTable& table, const comm::ChoiceTable& measured);

}  // namespace weft::measure
