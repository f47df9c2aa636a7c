// One measured step calibrates a stack: other plans of the same truth are predicted better, and nonsense is refused.
#include "weft/translate/recipe/anchor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "weft/language/bind.h"
#include "weft/language/catalog.h"

namespace weft::recipe {
namespace {

using cluster::Stack;

// Seconds of a plan with the constants of the default stack, and bytes.
struct TruePlan {
  double kernels, layers, collectives, states, gradients, activations;
};

constexpr double kGB = 1e9;
constexpr TruePlan kPlans[] = {
    {1.0, 100, 0.05, 20 * kGB, 10 * kGB, 10 * kGB}, {0.5, 200, 0.4, 10 * kGB, 5 * kGB, 30 * kGB},
    {2.0, 50, 0.3, 5 * kGB, 2 * kGB, 40 * kGB},     {0.05, 400, 0.02, 30 * kGB, 4 * kGB, 3 * kGB},
    {0.3, 300, 0.01, 1 * kGB, 1 * kGB, 1 * kGB},
};

StepValues run_step(const Stack& stack, const TruePlan& plan) {
  return {std::max(plan.kernels / stack.products, plan.layers * stack.host_layer) +
              plan.collectives * stack.collectives + stack.host_step,
          plan.states + plan.gradients * stack.gradients + plan.activations * stack.kept};
}

Stack base_stack() {
  Stack stack;
  stack.name = "ours";
  stack.host_layer = 2e-3;
  stack.host_step = 10e-3;
  stack.step_error = 0.2;
  stack.memory_error = 0.2;
  return stack;
}

AnchorProblem problem_of(std::vector<TruePlan> plans, std::vector<StepValues> measured) {
  AnchorProblem problem;
  problem.stack = base_stack();
  problem.step_error = problem.stack.step_error;
  problem.memory_error = problem.stack.memory_error;
  problem.measured = std::move(measured);
  problem.predict = [plans = std::move(plans)](const Stack& stack) -> Result<std::vector<StepValues>> {
    std::vector<StepValues> values;
    for (const TruePlan& plan : plans) values.push_back(run_step(stack, plan));
    return values;
  };
  return problem;
}

// The stack calibrated by one plan's step, as another stack runs it.
Anchor anchored_by(const TruePlan& plan, const StepValues& measured) {
  auto made = anchor(problem_of({plan}, {measured}));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *std::move(made);
}

std::string error_of(const StepValues& measured) {
  const auto made = anchor(problem_of({kPlans[0]}, {measured}));
  return made.ok() ? "" : made.error().message;
}

// Every plan in turn is the anchor of all others, for truths around the base in each of the constants.
TEST(Anchor, PredictsOtherPlansBetter) {
  double without = 0, with = 0;
  for (const double products : {0.6, 0.8, 1.0, 1.3})
    for (const double host : {1e-3, 2e-3, 4e-3})
      for (const double collectives : {0.7, 1.0, 1.6}) {
        Stack truth = base_stack();
        truth.products = products;
        truth.host_layer = host;
        truth.collectives = collectives;
        truth.kept = products;
        for (const TruePlan& measured : kPlans) {
          const Anchor made = anchored_by(measured, run_step(truth, measured));
          for (const TruePlan& other : kPlans) {
            if (&other == &measured) continue;
            const double real = run_step(truth, other).seconds;
            without += std::abs(run_step(base_stack(), other).seconds / real - 1);
            with += std::abs(run_step(made.stack, other).seconds / real - 1);
          }
        }
      }
  EXPECT_LT(with, 0.85 * without);
}

TEST(Anchor, MovesTheTermThatDominates) {
  const TruePlan &of_kernels = kPlans[0], &of_host = kPlans[3];
  const Anchor kernels = anchored_by(of_kernels, {1.4 * run_step(base_stack(), of_kernels).seconds, 0});
  EXPECT_LT(kernels.stack.products, 0.85);
  EXPECT_NEAR(kernels.stack.host_layer, 2e-3, 1e-4);
  const Anchor host = anchored_by(of_host, {1.4 * run_step(base_stack(), of_host).seconds, 0});
  EXPECT_GT(host.stack.host_layer, 2.3e-3);
  EXPECT_NEAR(host.stack.products, 1, 0.01);
  EXPECT_EQ(host.stack.name, "ours_anchored");
}

TEST(Anchor, MovesMemoryApartFromTime) {
  const StepValues predicted = run_step(base_stack(), kPlans[1]);
  const Anchor made = anchored_by(kPlans[1], {0, 1.2 * predicted.peak_bytes});
  EXPECT_GT(made.stack.kept, 1.1);
  EXPECT_GT(made.stack.gradients, 1);
  EXPECT_LT(made.stack.gradients, made.stack.kept);
  EXPECT_EQ(made.stack.products, 1);
  EXPECT_EQ(made.stack.step_error, 0.2);
  EXPECT_LT(made.stack.memory_error, 0.2);
}

// A slower measured step never makes the measured plan's prediction faster, nor that of others while the same term
// bounds them.
TEST(Anchor, IsMonotone) {
  for (const TruePlan& plan : kPlans) {
    const double predicted = run_step(base_stack(), plan).seconds;
    double last = 0, last_other = 0;
    for (double ratio = 0.35; ratio < 2.9; ratio *= 1.07) {
      const Anchor made = anchored_by(plan, {ratio * predicted, 0});
      const double now = made.after[0].seconds, other = run_step(made.stack, kPlans[1]).seconds;
      EXPECT_GE(now, 0.99 * last) << ratio;
      if (ratio > 0.6 && ratio < 1.7) EXPECT_GE(other, 0.99 * last_other) << ratio;
      last = now;
      last_other = other;
    }
  }
}

// Half of a small discrepancy belongs to the measured plan alone; more measurements tell more of it.
TEST(Anchor, MovesPartOfTheWay) {
  const double predicted = run_step(base_stack(), kPlans[2]).seconds;
  const auto reached = [&](std::size_t count) {
    const double measured = 1.1 * predicted;
    const auto made =
        anchor(problem_of(std::vector(count, kPlans[2]), std::vector(count, StepValues{measured, 0})));
    EXPECT_TRUE(made.ok());
    return std::pair((made->after[0].seconds / predicted - 1) / 0.1, made->stack.step_error);
  };
  const auto [one, error_of_one] = reached(1);
  const auto [eight, error_of_eight] = reached(8);
  EXPECT_GT(one, 0.35);
  EXPECT_LT(one, 0.65);
  EXPECT_GT(eight, 0.8);
  EXPECT_LT(error_of_one, 0.2);
  EXPECT_LT(error_of_eight, error_of_one);
}

TEST(Anchor, ChangesNothingIfThePredictionHolds) {
  for (const TruePlan& plan : kPlans) {
    const Anchor made = anchored_by(plan, run_step(base_stack(), plan));
    for (const AnchorFactor& factor : made.factors) EXPECT_NEAR(factor.factor, 1, 1e-6) << factor.what;
  }
}

TEST(Anchor, RefusesNonsense) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), most = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of({0, 0}), "expected a measured step or peak of memory, found neither");
  EXPECT_EQ(error_of({nan, 0}), "a measured step must be a positive number, found nan");
  EXPECT_EQ(error_of({most, 0}), "a measured step must be a positive number, found inf");
  EXPECT_EQ(error_of({1, -1}), "a measured peak of memory must be a positive number, found -1");
  EXPECT_EQ(error_of({100, 0}),
            "a measured step must be within 0.3 to 3 times the predicted 1.06 s, found 100 s");
  EXPECT_EQ(error_of({1e-300, 0}).substr(0, 42), "a measured step must be within 0.3 to 3 ti");
  EXPECT_EQ(error_of({0, 1}),
            "a measured peak of memory must be within 0.3 to 3 times the predicted 37.3 GiB, found 1 B");
  AnchorProblem failing = problem_of({kPlans[0]}, {{1, 0}});
  failing.predict = [](const Stack&) -> Result<std::vector<StepValues>> { return user_error("no estimate"); };
  EXPECT_EQ(anchor(failing).error().message, "no estimate");
}

// What is printed defines the same stack.
TEST(Anchor, PrintsTheStackAsAStatement) {
  const Stack stack = anchored_by(kPlans[1], {1.3, 60 * kGB}).stack;
  const auto parsed = language::parse_and_keep(print_create(stack));
  ASSERT_TRUE(parsed.ok()) << print_create(stack);
  language::Catalog catalog;
  ASSERT_TRUE(language::define(catalog, *parsed, *(*parsed)->script.statements.front(), {}).ok());
  const Stack& read = catalog.stacks.at("ours_anchored");
  for (const cluster::StackField& field : cluster::stack_fields())
    EXPECT_NEAR(read.*field.field, stack.*field.field, 1e-5 * std::abs(stack.*field.field)) << field.name;
}

}  // namespace
}  // namespace weft::recipe
