// weft/app/explain/in_time.h -- what EXPLAIN says of a plan whose step is cut in stages and micro-batches.
//
//   stage  parts          F        B        W        idle    in flight  memory
//   0      x .. block.11  4.1 ms   4.2 ms   3.9 ms   61 ms   8          41 GiB
//
// Below the stages the schedule is drawn, and the bubble is parted by where it comes from. Where the plan ran,
// what its passes took stands beside what was predicted, and the schedule is drawn as it ran.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/app/explain/distributed.h"
#include "weft/app/explain/step_page.h"
#include "weft/planner/search/pipeline/choose_in_time.h"

namespace weft::explain {

// The same plan, really run.
struct MeasuredInTime {
  double seconds = 0;  // of a step: the median of the steps, of the slowest rank
  std::size_t steps = 0;
  std::string ranks;        // "4 processes over shared memory"
  double memory_bytes = 0;  // of rank 0
  struct Stage {
    double forward = 0, backward = 0, weight = 0;  // seconds of a micro-batch, collectives within it counted
    double update = 0, idle = 0;                   // of a step
  };
  std::vector<Stage> stages;                       // the mean of their ranks
  double bubble = 0;                               // of a step, while the busiest stage does nothing
  std::vector<std::vector<pipeline::Slot>> slots;  // by stage and pass: its first rank in one step
  double bubble_rate() const { return seconds > 0 ? bubble / seconds : 0; }
};

struct InTimeExplanation {
  DistributedExplanation about;  // of the statement; it has no choice
  const search::ChosenInTime* choice = nullptr;
  bool given = false;              // by the user: nothing was searched
  std::string batch;               // the index that micro-batches cut
  std::int64_t rows = 1;           // of a step along it
  double lower_bound_seconds = 0;  // no plan of this cluster takes less, whatever it moves
  std::string lower_bound_why;
  std::vector<search::Alternative> without_stages;  // families, best first said in why_not
  std::optional<MeasuredInTime> measured;
  std::int64_t batch_norms = 0;  // that take their statistics from a micro-batch
};

std::string print_text(const InTimeExplanation& explanation);
std::string print_json(const InTimeExplanation& explanation);  // one line
// With a predicted timeline of passes for each stage.
StepPage step_page(const InTimeExplanation& explanation);

}  // namespace weft::explain
