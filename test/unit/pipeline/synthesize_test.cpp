// Synthesized schedules against exhaustive search and against the shipped ones.
#include "weft/pipeline/synthesize.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/pipeline/library.h"
#include "weft/pipeline/verify.h"

namespace weft::pipeline {
namespace {

Times random_times(Random& random, std::int32_t stages) {
  Times times = Times::alike(stages, 1, 1, 1, 1);
  for (auto* list : {&times.forward, &times.backward, &times.weight})
    for (double& time : *list) time = static_cast<double>(random.between(1, 6));
  for (double& time : times.transfer) time = static_cast<double>(random.between(0, 2));
  return times;
}

// Every way to mix Fs, Bs and Ws on every stage, each kind in the order of micro-batches.
double best_of_all(const SynthesisRequest& request) {
  std::vector<std::vector<Pass>> ways;
  std::vector<Pass> way;
  const std::function<void(std::int32_t, std::int32_t, std::int32_t)> mix = [&](auto f, auto b, auto w) {
    if (w == request.micro_batches) ways.push_back(way);
    const auto go = [&](Kind kind, std::int32_t micro, auto... next) {
      way.push_back({kind, micro, 0});
      mix(next...);
      way.pop_back();
    };
    if (f < request.micro_batches) go(Kind::forward, f, f + 1, b, w);
    if (b < f) go(Kind::backward, b, f, b + 1, w);
    if (w < b) go(Kind::weight, w, f, b, w + 1);
  };
  mix(0, 0, 0);
  Schedule schedule{"any", request.stages, request.micro_batches, 1, Route::line, request.clock, {}};
  schedule.orders.resize(static_cast<std::size_t>(request.stages));
  double best = 1e300;
  const std::function<void(std::size_t)> choose = [&](std::size_t stage) {
    if (stage == schedule.orders.size()) {
      for (const double peak : peak_memory(schedule, request.weight_share))
        if (!request.memory.empty() && peak > request.memory[0] + 1e-9) return;
      if (const auto priced = price(schedule, request.times); priced.ok())
        best = std::min(best, priced->cost);
      return;
    }
    for (const auto& one : ways) {
      schedule.orders[stage] = one;
      choose(stage + 1);
    }
  };
  choose(0);
  return best;
}

TEST(SynthesizeTest, FindsTheBestOfFewPasses) {
  Random random(7);
  for (const auto& [stages, micro_batches] : {std::pair(2, 2), std::pair(2, 3), std::pair(3, 2)})
    for (const double memory : {1.0, 2.0, 3.0})
      for (const Clock clock : {Clock::span, Clock::end}) {
        SynthesisRequest request{stages, micro_batches, 1, random_times(random, stages), {memory}};
        request.clock = clock;
        const auto made = synthesize(request);
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_NEAR(made->price.cost, best_of_all(request), 1e-9) << stages << " x " << micro_batches;
        EXPECT_LE(made->lower_bound, made->price.cost + 1e-9);
        EXPECT_LE(lower_bound(request), made->price.cost + 1e-9);
      }
}

// Where stages differ no shipped schedule fits as well, but for those that reach the lower bound.
TEST(SynthesizeTest, BeatsTheShippedOnesWhereStagesDiffer) {
  Random random(8);
  for (int round = 0; round < 3; ++round) {
    SynthesisRequest request{4, 12, 1, random_times(random, 4), {8}};
    request.effort = 0.1;
    const auto made = synthesize(request);
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(verify(made->schedule).ok());
    for (const double peak : made->peak_memory) EXPECT_LE(peak, 8 + 1e-9);
    for (const ScheduleText& text : shipped_schedules()) {
      if (text.route != Route::line) continue;
      Schedule schedule = unfold(text, {{"stages", 4}, {"micro_batches", 12}}).value();
      schedule.clock = Clock::span;
      const std::vector<double> peaks = peak_memory(schedule, request.weight_share);
      if (*std::max_element(peaks.begin(), peaks.end()) > 8) continue;
      const double cost = price(schedule, request.times)->cost;
      if (cost > made->lower_bound * (1 + 1e-9)) EXPECT_LT(made->price.cost, cost) << text.name;
    }
  }
}

TEST(SynthesizeTest, RefusesWhatMakesNoSense) {
  SynthesisRequest request{2, 2, 1, Times::alike(2, 1, 1, 1, 0), {0.5}};
  EXPECT_EQ(synthesize(request).error().message, "stage 0 holds less than one forward pass: 0.5");
  request.memory = {1, 2, 3};
  EXPECT_EQ(synthesize(request).error().message, "memory is one limit or one a stage: 2 stages, 3 limits");
  request.memory = {};
  request.times.forward = {1, -1};
  EXPECT_EQ(synthesize(request).error().message, "a forward time is a number and not negative: -1");
}

}  // namespace
}  // namespace weft::pipeline
