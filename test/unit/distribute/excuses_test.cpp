// What lets a plan differ from the model is refused where it is not meant.
#include "weft/parallel/distribute/excuses.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/text.h"

namespace weft::distribute {
namespace {

const train::TrainingPlan& digits() {
  static const train::TrainingPlan plan =
      training_plan("digits_mlp", {{"b", 4, {}}, {"p", 2, {}}, {"f", 4, {}}, {"c", 3, {}}});
  return plan;
}

// The plan with a period for its all-reduces: period(its number among all, the phase it runs in); 1: none.
template <class Period>
std::string verdict(std::string_view distribution, Period&& period) {
  const DistributedPlan made = distributed(digits(), distribution);
  const std::string text = plan::print(made.graph);
  std::string changed;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.find(" = all-reduce ") != std::string::npos) {
      const int every = period(number++, line.find(" in ") == std::string::npos);
      if (every > 1) line.insert(line.find('}'), ", every=" + std::to_string(every));
    }
    changed += line + "\n";
  }
  DistributedPlan plan;
  plan.graph = plan::read(changed, ops::all()).value();
  plan.mesh = made.mesh;
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  Origins origins = trace_origins(digits().graph, plan.graph).value();
  plan.opened = std::move(origins.opened);
  plan.origin = std::move(origins.origin);
  plan.own = std::move(origins.own);
  const auto proof = prove(digits().graph, plan);
  if (!proof.ok()) return proof.error().message;
  return proof->wrong ? proof->wrong->what : proof->unseen;
}

TEST(Excuses, GradientsMayAllBeSummedEveryFewSteps) {
  EXPECT_EQ(verdict("rank=2: slice b", [](int, bool) { return 1; }), "");
  EXPECT_EQ(verdict("rank=2: slice b", [](int, bool is_forward) { return is_forward ? 1 : 8; }), "");
}

TEST(Excuses, TheLossAndTheCountMayNot) {
  int forward = 0;
  verdict("rank=2: slice b", [&](int, bool is_forward) { return forward += is_forward, 1; });
  ASSERT_GT(forward, 0);
  for (int skipped = 0; skipped < forward; ++skipped) {
    int at = 0;
    const std::string why = verdict(
        "rank=2: slice b", [&](int, bool is_forward) { return is_forward && at++ != skipped ? 1 : 8; });
    EXPECT_NE(why.find("is for gradients that optimizers read"), std::string::npos) << why;
  }
}

TEST(Excuses, OneGradientAmongManyMayNot) {
  int last = -1;
  verdict("rank=2: slice b", [&](int number, bool) { return last = number, 1; });
  EXPECT_NE(verdict("rank=2: slice b", [&](int number, bool) { return number == last ? 8 : 1; })
                .find("others are summed every 8"),
            std::string::npos);
  EXPECT_NE(verdict("rank=2: slice b",
                    [&](int number, bool is_forward) { return is_forward       ? 1
                                                              : number == last ? 8
                                                                               : 4; })
                .find("others are summed every 8"),
            std::string::npos);
}

TEST(Excuses, WhatRanksShareMayNot) {
  EXPECT_NE(verdict("rank=2: slice f", [](int, bool) { return 8; }), "");
  EXPECT_NE(verdict("node=2: slice b; gpu=2: slice b, shard optimizer",
                    [](int, bool is_forward) { return is_forward ? 1 : 8; }),
            "");
}

}  // namespace
}  // namespace weft::distribute
