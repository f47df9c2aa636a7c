// Plans chosen again for ranks and links that are slower than planned.
#include "weft/planner/step/replan.h"

#include <gtest/gtest.h>

#include "weft/language/catalog.h"
#include "weft/language/shipped.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/plan_for.h"

namespace weft::planner {
namespace {

template <class T>
T or_fail(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// A prepared statement, and the plan that TRAIN would run.
class Planned {
 public:
  explicit Planned(std::string_view text) {
    load_shipped(state_.catalog);
    source_ = or_fail(language::parse_and_keep(text));
    prepared_ = or_fail(
        prepare(state_, source_->script.statements.front()->as<language::syntax::Run>(), Purpose::plan));
    now_ = or_fail(to_train(state_, prepared_, or_fail(plan_for(state_, prepared_, /*compare=*/false))));
  }

  // The planned times of a step.
  run::RankSpeeds as_planned() const {
    const sim::RankClass& ranks = now_.choice.spread->chosen.prediction.classes.front();
    const std::vector<run::StepTimes> step = {run::step_times(*ranks.program, ranks.timeline)};
    const plan::Mesh& mesh = now_.choice.spread->chosen.plan.mesh;
    return run::speeds_of(
        *ranks.program, mesh,
        std::vector<std::vector<run::StepTimes>>(static_cast<std::size_t>(mesh.ranks()), step));
  }

  Slowness slowness(const run::RankSpeeds& speeds) const {
    return or_fail(slowness_of(prepared_, now_.choice.spread->chosen, speeds, {}));
  }

  std::optional<OtherPlan> other(const Slowness& slowness) const {
    return or_fail(find_other_plan(state_, context_, prepared_, now_, slowness));
  }

  std::optional<std::string> look(Replanning& replanning, std::int64_t step,
                                  const run::RankSpeeds& speeds) const {
    return replanning.look(step, now_, speeds);
  }

  Knowledge& state() { return state_; }
  Observer& context() { return context_; }
  const Prepared& prepared() const { return prepared_; }
  const PlanToTrain& now() const { return now_; }

 private:
  Knowledge state_;
  Observer context_;
  std::shared_ptr<const language::ParsedText> source_;
  Prepared prepared_;
  PlanToTrain now_;
};

constexpr std::string_view kMlp =
    "TRAIN digits_mlp ON LOCAL 2 FROM 'digits.csv' STEPS 1 WITH (b = 1024, f = 1024, prove = false)";

TEST(Replan, PlannedSpeedsChangeNothing) {
  const Planned mlp(kMlp);
  const Slowness slowness = mlp.slowness(mlp.as_planned());
  EXPECT_NEAR(slowness.compute, 1, 1e-6);
  EXPECT_FALSE(differs(slowness, {}));
  EXPECT_FALSE(mlp.other(slowness).has_value());
}

TEST(Replan, EveryStepWaitsForASlowRank) {
  const Planned mlp(kMlp);
  run::RankSpeeds speeds = mlp.as_planned();
  speeds.compute[1] *= 5;
  const Slowness slowness = mlp.slowness(speeds);
  EXPECT_NEAR(slowness.compute, 5, 1e-6);
  EXPECT_TRUE(differs(slowness, {}));
  EXPECT_FALSE(differs(slowness, slowness));
}

// Where exchanges take far longer than planned, a plan with less communication wins.
TEST(Replan, UsesASlowLinkLess) {
  Planned mlp(kMlp);
  run::RankSpeeds speeds = mlp.as_planned();
  ASSERT_GT(speeds.exchange[0], 0);
  for (double& seconds : speeds.exchange) seconds *= 1e4;
  const Slowness slowness = mlp.slowness(speeds);
  ASSERT_EQ(slowness.links.size(), 1u);
  EXPECT_NEAR(slowness.links[0], 1e4, 1);
  const auto other = mlp.other(slowness);
  ASSERT_TRUE(other.has_value());
  EXPECT_LT(other->seconds, 0.9 * other->seconds_now);
  EXPECT_NE(other->plan.kept, mlp.now().kept);

  std::string said;
  mlp.context().on_warning = [&](std::string_view text) { said += text; };
  Replanning quiet(mlp.state(), mlp.context(), mlp.prepared());
  EXPECT_EQ(mlp.look(quiet, 40, mlp.as_planned()), std::nullopt);
  EXPECT_EQ(said, "");
  Replanning replanning(mlp.state(), mlp.context(), mlp.prepared());
  EXPECT_EQ(mlp.look(replanning, 80, speeds), other->plan.kept);
  EXPECT_NE(said.find("switched to another plan from step 81 on"), std::string::npos) << said;
  EXPECT_NE(said.find("exchanges along rank take 10000 times as long as planned"), std::string::npos) << said;
}

}  // namespace
}  // namespace weft::planner
