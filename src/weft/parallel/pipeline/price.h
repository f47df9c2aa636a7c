// weft/parallel/pipeline/price.h -- how long a schedule takes, and what it holds.
//
// Every pass begins as soon as its stage is free and what it needs has arrived; transfers lie beside the passes
// and do not wait for one another. bubble_rate = (cost - work) / cost, with the work of the busiest stage. A pair of
// an F and a B that overlap takes F + B - overlap * min(F, B), and both end when the pair does.
//
// A stage holds a micro-batch from the begin of its F to the end of its W: peak_in_flight counts these in
// forward passes of one whole stage.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

// Of one micro-batch on one whole stage, a number a stage, in any one unit.
struct Times {
  std::vector<double> forward, backward, weight;
  std::vector<double> transfer;  // from a stage to the next and back; the last: between it and stage 0
  double overlap =
      0;  // of a pair that runs beside each other, the part of the shorter that is hidden: 0 to 1

  static Times alike(std::int32_t stages, double forward, double backward, double weight, double transfer);
  double work(std::size_t stage) const { return forward[stage] + backward[stage] + weight[stage]; }
  double between(std::int32_t from, std::int32_t to) const;
};
// Fails unless there is one time for each stage, finite and not negative.
Status check(const Times& times, std::int32_t stages);

struct Slot {
  double begin = 0, end = 0;
};

struct Price {
  double end = 0, span = 0;
  double cost = 0;  // by the schedule's clock
  double bubble_rate = 0;
  std::vector<double> peak_in_flight;
  std::vector<double> idle;              // of each stage between its first and last pass
  std::vector<std::vector<Slot>> slots;  // as the orders are
};

// Fails when the passes wait for one another in a circle, or are not those of the schedule: see verify.h, which
// says more.
Result<Price> price(const Schedule& schedule, const Times& times);
// The same for those who ask often, without peak_in_flight. REQUIRES: verify() and check() have passed them.
Price price_verified(const Schedule& schedule, const Times& times);

}  // namespace weft::pipeline
