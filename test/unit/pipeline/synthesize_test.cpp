// Synthesized schedules compared with exhaustive search and with the shipped ones.
#include "weft/parallel/pipeline/synthesize.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/base/random.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

Times random_times(Random& random, std::int32_t stages) {
  Times times = Times::alike(stages, 1, 1, 1, 1);
  for (auto* list : {&times.forward, &times.backward, &times.weight})
    for (double& time : *list) time = static_cast<double>(random.between(1, 6));
  for (double& time : times.transfer) time = static_cast<double>(random.between(0, 2));
  return times;
}

// All interleavings of Fs, Bs and Ws on every stage, each kind in the order of micro-batches.
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

TEST(SynthesizeTest, FindsTheOptimumOfFewPasses) {
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

// Where stages differ, no shipped schedule is as good, except those that reach the lower bound.
TEST(SynthesizeTest, BeatsShippedSchedulesIfStagesDiffer) {
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

// Qi et al., Zero bubble pipeline parallelism: none is worse than their schedules at equal memory.
// ZB-1p and ZB-V hold as much as 1F1B's first stage, ZB-2p twice that; what B frees follows from
// the model's sizes.
TEST(SynthesizeTest, IsNoWorseThanPublishedSearches) {
  const std::filesystem::path file =
      std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/zb-schedules/settings.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no corpus";
  std::ifstream stream(file);
  for (const auto& setting : nlohmann::json::parse(stream))
    for (const auto& [name, published] : setting["bubble_rate"].items()) {
      if (name != "ZB-1p" && name != "ZB-2p" && name != "ZB-V") continue;
      const std::int32_t stages = setting["p"];
      const double hidden = setting["hidden"], heads = setting["heads"], tokens = setting["seq"];
      SynthesisRequest request{.stages = stages, .micro_batches = setting["m"]};
      request.chunks = name == "ZB-V" ? 2 : 1;
      request.times =
          Times::alike(stages, setting["T_F_us"], setting["T_B_us"], setting["T_W_us"], setting["T_comm_us"]);
      request.memory = {name == "ZB-2p" ? 2.0 * stages : stages};
      request.weight_share = 32 * hidden / (34 * hidden + 5 * heads * tokens);
      request.clock = name == "ZB-1p" ? Clock::end : Clock::span;
      request.effort = 0.02;
      if (stages * request.micro_batches > 2500) continue;  // `make bench` runs these too
      const auto made = synthesize(request);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_LE(made->price.bubble_rate, published.get<double>() + 5e-5) << setting["id"] << " " << name;
      for (const double peak : made->peak_memory) EXPECT_LE(peak, request.memory[0] + 1e-9);
      EXPECT_LE(made->lower_bound, made->price.cost);
    }
}

// An interleaved V shape: insufficient memory is rejected, and there may be fewer micro-batches
// than stages.
TEST(SynthesizeTest, InterleavesAtAnySize) {
  for (const std::int32_t stages : {1, 2, 5})
    for (const std::int32_t micro_batches : {1, 3, 9}) {
      SynthesisRequest request{stages, micro_batches, 2, Times::alike(stages, 2, 2, 1, 0.5), {}};
      request.effort = 0.01;
      for (const double memory : {1.0, 2.0, 1.0 * stages}) {
        request.memory = {memory};
        const auto made = synthesize(request);
        ASSERT_TRUE(made.ok()) << stages << " x " << micro_batches << ": " << made.error().message;
        EXPECT_LE(*std::max_element(made->peak_memory.begin(), made->peak_memory.end()), memory + 1e-9);
        EXPECT_LE(made->lower_bound, made->price.cost * (1 + 1e-9)) << stages << " x " << micro_batches;
      }
    }
}

TEST(SynthesizeTest, RejectsInvalidRequests) {
  SynthesisRequest request{2, 2, 1, Times::alike(2, 1, 1, 1, 0), {0.5}};
  EXPECT_EQ(synthesize(request).error().message, "stage 0 holds less than one forward pass: 0.5");
  request.memory = {1, 2, 3};
  EXPECT_EQ(synthesize(request).error().message,
            "expected one memory limit or one per stage: 2 stages, 3 limits");
  request.memory = {};
  request.times.forward = {1, -1};
  EXPECT_EQ(synthesize(request).error().message, "expected a forward time of 0 or more, found -1");
}

}  // namespace
}  // namespace weft::pipeline
