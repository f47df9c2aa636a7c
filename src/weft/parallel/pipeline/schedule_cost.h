// weft/parallel/pipeline/schedule_cost.h -- the time and memory of a schedule.
//
// A pass begins as soon as its stage is free and its inputs have arrived. Transfers run beside
// passes and do not delay one another. bubble_rate = (cost - work) / cost, with the work of the
// busiest stage. An overlapping pair of F and B takes F + B - overlap * min(F, B), and both end
// when the pair does.
//
// A stage holds a micro-batch from the begin of its F to the end of its W: peak_in_flight counts
// these in forward passes of one whole stage.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

// Times of one micro-batch on one whole stage, by stage, in any unit.
struct Times {
  std::vector<double> forward, backward, weight;
  std::vector<double> transfer;  // from a stage to the next and back; the last: to stage 0
  double overlap = 0;            // hidden share of the shorter pass of an overlapping pair: 0 to 1

  static Times alike(std::int32_t stages, double forward, double backward, double weight, double transfer);
  double work(std::size_t stage) const { return forward[stage] + backward[stage] + weight[stage]; }
  double between(std::int32_t from, std::int32_t to) const;
};
// Fails unless there is one time per stage, finite and not negative.
Status check(const Times& times, std::int32_t stages);

struct Slot {
  double begin = 0, end = 0;
};

struct Price {
  double end = 0, span = 0;
  double cost = 0;  // by the schedule's clock
  double bubble_rate = 0;
  std::vector<double> peak_in_flight;
  std::vector<double> idle;              // by stage, between its first and last pass
  std::vector<std::vector<Slot>> slots;  // parallel to the orders
};

// Fails if the passes deadlock or are not those of the schedule; verify.h gives more detail.
Result<Price> price(const Schedule& schedule, const Times& times);
// A faster version without peak_in_flight. REQUIRES: the arguments passed verify() and check().
Price time_verified(const Schedule& schedule, const Times& times);

}  // namespace weft::pipeline
