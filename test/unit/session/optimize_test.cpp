// The planner's list of stages: what each one does, and that each can be switched off.
#include "weft/planner/search/optimize.h"

#include <gtest/gtest.h>

#include "ranks_case.h"
#include "search_case.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/rules/rule/library.h"

namespace weft::search {
namespace {

cluster::Cluster slow_outside(std::int64_t nodes) {
  cluster::Cluster made{"pod", some_gpu(100e12), {}};
  for (const auto& [name, size, rate] :
       {std::tuple{"node", nodes, 1e6}, std::tuple{"gpu", std::int64_t{2}, 400e9}}) {
    cluster::Link link;
    link.name = name;
    link.bytes_per_second = rate;
    link.latency_seconds = 2e-6;
    made.axes.push_back({name, size, std::move(link)});
  }
  return made;
}

struct Case {
  session::Learner learner =
      session::learner("digits_mlp", {{"b", 32, {}}, {"f", 64, {}}}, train::Optimizer::sgd);
  cluster::Cluster pod, one{"gpu", some_gpu(100e12), {{"rank", 1, {}}}};
  Machine machine = machine_by_figures(pod), alone = machine_by_figures(one);
  Problem problem;

  explicit Case(std::int64_t nodes) : pod(slow_outside(nodes)) {
    problem.plan = &learner.graph;
    problem.learns = true;
    problem.cluster = &pod;
    problem.machine = &machine;
    problem.alone = &alone;
    problem.rules = rule::shipped_rules();
    problem.prove = [](const rule::Rule& rule) {
      planner::Warnings none;
      return planner::as_proven(rule, none);
    };
    problem.distribution.given = distribute::read_distribution("node=2: slice b; gpu=2: slice b").value();
  }
};

const StageReport& report(const Choice& choice, std::string_view stage) {
  return *std::ranges::find(choice.reports, stage, &StageReport::stage);
}

plan::Graph computed_twice() {
  return plan::read(R"(plan p
%0 = input {name=x, type=f32[b=512,d=512]}
%1 = parameter {name=v, type=f32[d=512,n=512]}
%2 = exp %0
%3 = exp %0
%4 = contract %2, %1 {to=[b,n]}
%5 = contract %3, %1 {to=[b,n]}
%6 = add %4, %5
return y=%6
)",
                    ops::all())
      .value();
}

TEST(Optimize, HasOneListOfStagesInOrder) {
  EXPECT_EQ(stage_names(),
            (std::vector<std::string_view>{"rewrite", "distribute", "rewrite communication", "local sgd",
                                           "delay gradients", "codecs", "bucket", "tile collectives",
                                           "partition all-reduces", "choose algorithms", "schedule",
                                           "pipeline", "recompute", "synthesize"}));
  for (const Stage& stage : stages()) EXPECT_FALSE(stage.purpose.empty()) << stage.name;
}

TEST(Optimize, EveryStageReportsAndKeepsTheTrail) {
  const Case on(2);
  const auto choice = optimize(on.problem);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  ASSERT_EQ(choice->reports.size(), stages().size() + 1);
  EXPECT_EQ(choice->reports.back().stage, "other distributions");
  EXPECT_GT(choice->reports.back().tried, 0);
  ASSERT_TRUE(choice->spread);
  EXPECT_TRUE(report(*choice, "distribute").changed);
  EXPECT_EQ(report(*choice, "distribute").said, "node=2: slice b; gpu=2: slice b");
  const StageReport& rewritten = report(*choice, "rewrite communication");
  EXPECT_EQ(rewritten.was, StageReport::Was::run);
  EXPECT_FALSE(rewritten.said.empty());
  EXPECT_EQ(rewritten.changed, !choice->communication_trail.empty()) << rewritten.said;
  EXPECT_EQ(rewritten.changed, rewritten.seconds < report(*choice, "distribute").seconds) << rewritten.said;
  const StageReport& bucketed = report(*choice, "bucket");
  EXPECT_EQ(bucketed.was, StageReport::Was::run);
  EXPECT_EQ(bucketed.changed, bucketed.seconds < rewritten.seconds) << bucketed.said;
  const StageReport& tiled = report(*choice, "tile collectives");
  EXPECT_EQ(tiled.was, StageReport::Was::run);
  EXPECT_EQ(tiled.changed, tiled.seconds < bucketed.seconds) << tiled.said;
  const StageReport& cut = report(*choice, "partition all-reduces");
  EXPECT_EQ(cut.was, StageReport::Was::run);
  EXPECT_EQ(cut.changed, cut.seconds < tiled.seconds) << cut.said;
  EXPECT_EQ(report(*choice, "schedule").seconds, choice->spread->chosen.prediction.seconds);
}

TEST(Optimize, ADisabledStageLeavesThePlanUnchanged) {
  Case on(2);
  on.problem.off = {"rewrite", "rewrite communication", "bucket", "tile collectives",
                    "partition all-reduces"};
  const auto choice = optimize(on.problem);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(report(*choice, "rewrite communication").was, StageReport::Was::off);
  EXPECT_TRUE(choice->communication_trail.empty());
  const auto plain = choose_distribution(on.learner.graph, on.pod, on.machine, on.problem.distribution);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plan::print(choice->spread->chosen.plan.graph), plan::print(plain->chosen.plan.graph));
}

TEST(Optimize, OneDeviceNeedsNoDistributedStages) {
  Case on(2);
  on.problem.cluster = &on.one;
  on.problem.distribution.given.reset();
  const auto choice = optimize(on.problem);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_FALSE(choice->spread);
  EXPECT_EQ(report(*choice, "rewrite").was, StageReport::Was::run);
  EXPECT_EQ(report(*choice, "distribute").was, StageReport::Was::not_needed);
}

// A value that is computed twice is then computed once, whether or not parameters are trained.
TEST(Optimize, RulesRewriteInferenceAndTrainingPlans) {
  const plan::Graph graph = computed_twice();
  for (const bool learns : {false, true}) {
    SCOPED_TRACE(learns);
    Case on(2);
    on.problem.plan = &graph;
    on.problem.learns = learns;
    on.problem.cluster = &on.one;
    const auto choice = optimize(on.problem);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_TRUE(choice->rewritten) << report(*choice, "rewrite").said;
    EXPECT_LT(choice->plan.node_count(), graph.node_count());
    EXPECT_LT(choice->seconds_at_best, choice->seconds_before);
    EXPECT_FALSE(choice->trail.empty());
  }
}

// A rewrite that pays off on one device is kept on several only if it pays off there too: the
// result is never slower than the original plan.
TEST(Optimize, ComparesARewriteWithTheOriginalOnceDistributed) {
  const plan::Graph graph = computed_twice();
  for (const double least_gain : {kLeastGain, 0.0})
    for (const char* by_hand : {"node=2: slice b; gpu=2: slice b", "node=2: slice b; gpu=2: slice n",
                                "node=2; gpu=2: slice d", "node=2; gpu=2"}) {
      SCOPED_TRACE(std::string(by_hand) + (least_gain > 0 ? "" : ", rules = true"));
      Case on(2);
      on.problem.plan = &graph;
      on.problem.least_gain = least_gain;
      on.problem.distribution.given = distribute::read_distribution(by_hand).value();
      const auto choice = optimize(on.problem);
      ASSERT_TRUE(choice.ok()) << choice.error().message;
      const auto plain = choose_distribution(graph, on.pod, on.machine, on.problem.distribution);
      ASSERT_TRUE(plain.ok()) << plain.error().message;
      const double spread = report(*choice, "distribute").seconds, written = plain->chosen.prediction.seconds;
      EXPECT_LE(spread, written);
      if (least_gain > 0) EXPECT_EQ(choice->rewritten, spread < (1 - least_gain) * written);
      EXPECT_EQ(choice->rewritten, !choice->trail.empty());
    }
}

}  // namespace
}  // namespace weft::search
