#include "weft/parallel/partition/two_stages.h"

#include <algorithm>
#include <limits>

namespace weft::partition {
namespace {

constexpr std::int32_t kMostStepIdeals = 50'000;
constexpr std::int32_t kWarmUp = 3;  // forwards of stage 0 before its first backward

struct StageTimes {
  double forward = 0, backward = 0, reduce = 0;  // ms
};

double ring_ms(double parameters, std::int32_t replicas, double bandwidth) {
  return 2.0 * (replicas - 1) / replicas * parameters / bandwidth * 1000;
}

// Both stages in the one order that their passes have: micro-batch i goes forward through stage 0 and the link,
// then forward and backward through stage 1, and back.
double two_stage_ms(const StageTimes& first, const StageTimes& second, double transfer, std::int32_t count) {
  std::vector<double> back(slot(count));  // when the gradients of a micro-batch are back at stage 0
  double free0 = 0, free1 = 0, ahead_free = 0, back_free = 0;
  std::int32_t forwards = 0;
  const auto go_forward = [&] {
    free0 += first.forward;
    ahead_free = std::max(ahead_free, free0) + transfer;
    free1 = std::max(free1, ahead_free) + second.forward + second.backward;
    back_free = std::max(back_free, free1) + transfer;
    back[slot(forwards++)] = back_free;
  };
  while (forwards < std::min(kWarmUp, count)) go_forward();
  for (std::int32_t backwards = 0; backwards < count; ++backwards) {
    free0 = std::max(free0, back[slot(backwards)]) + first.backward;
    if (forwards < count) go_forward();
  }
  return std::max(free0 + first.reduce, free1 + second.reduce);
}

}  // namespace

Result<StepAnswer> cut_step(const Profile& profile, const Step& step) {
  WEFT_TRY(order, topological_order(profile.dag()));
  const Ideals ideals = ideals_of(profile.dag(), order, kMostStepIdeals);
  const IdealSums sums = sums_of(profile, ideals);
  const auto times = [&](std::int32_t inner, std::int32_t outer, std::int32_t replicas) {
    const auto share = step.micro_batch / replicas;
    const auto in = slot(inner), out = slot(outer);
    return StageTimes{(sums.forward[out] - sums.forward[in]) * share,
                      (sums.backward[out] - sums.backward[in]) * share,
                      ring_ms(sums.parameters[out] - sums.parameters[in], replicas, step.bandwidth)};
  };
  const std::int32_t none = ideals.none(), all = ideals.all();
  const StageTimes whole = times(none, all, step.devices);
  StepAnswer answer;
  answer.ideals = ideals.count();
  answer.exact = ideals.complete();
  answer.data_parallel = answer.cost = step.micro_batches * (whole.forward + whole.backward) + whole.reduce;
  answer.stages = {{ideals.between(none, all), step.devices}};
  std::int32_t best = none, replicas = 0;
  for (std::int32_t cut = none + 1; cut < all; ++cut)
    for (std::int32_t own = 1; own < step.devices; ++own) {
      const std::int32_t other = step.devices - own;
      const StageTimes first = times(none, cut, own), second = times(cut, all, other);
      if (std::max(first.forward + first.backward, second.forward + second.backward) * step.micro_batches >=
          answer.cost)
        continue;
      const double transfer =
          sums.crossing[slot(cut)] * step.micro_batch / (step.bandwidth * std::min(own, other)) * 1000;
      const double ms = two_stage_ms(first, second, transfer, step.micro_batches);
      if (ms >= answer.cost) continue;
      answer.cost = ms;
      best = cut;
      replicas = own;
    }
  if (replicas > 0)
    answer.stages = {{ideals.between(none, best), replicas},
                     {ideals.between(best, all), step.devices - replicas}};
  return answer;
}

}  // namespace weft::partition
