// weft/explain/in_time.h -- what EXPLAIN says of a plan whose step is cut in stages and micro-batches.
//
//   stage  parts          F        B        W        idle    in flight  memory
//   0      x .. block.11  4.1 ms   4.2 ms   3.9 ms   61 ms   8          41 GiB
//
// Below the stages the schedule is drawn, and the bubble is parted by where it comes from.
#pragma once
#include <string>
#include <vector>

#include "weft/explain/distributed.h"
#include "weft/search/pipeline/choose_in_time.h"

namespace weft::explain {

struct InTimeExplanation {
  DistributedExplanation about;  // of the statement; it has no choice
  const search::ChosenInTime* choice = nullptr;
  bool given = false;              // by the user: nothing was searched
  std::string batch;               // the index that micro-batches cut
  std::int64_t rows = 1;           // of a step along it
  double lower_bound_seconds = 0;  // no plan of this cluster takes less, whatever it moves
  std::string lower_bound_why;
  std::vector<search::Alternative> without_stages;  // families, best first said in why_not
  std::int64_t batch_norms = 0;                     // that take their statistics from a micro-batch
};

std::string print_text(const InTimeExplanation& explanation);
std::string print_json(const InTimeExplanation& explanation);  // one line

}  // namespace weft::explain
