// From task timelines to the time of each node.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "execution_case.h"
#include "weft/app/explain/outline.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/attribution.h"

namespace weft::program {
namespace {

// Compiles to: copy x, copy w, contract, (exp, relu, reduce) by rows, combine, and copy of the
// relu.
constexpr std::string_view kPlan = R"(plan small
%0 = input {name=x, type=f32[a=2,b=3]}
%1 = parameter {name=w, type=f32[b=3,c=4], init=normal, a=0, b=1}
%2 = contract %0, %1 {to=[a,c]}
%3 = exp %2
%4 = relu %3
%5 = reduce %4 {kind=mean, to=[c]}
%6 = transpose %4 {to=[c,a]}
%7 = transpose %0 {to=[b,a]}
return mean=%5, turned=%6, x=%7, w=%1
)";

Program compiled(std::string_view text) {
  auto graph = std::make_shared<plan::Graph>(std::move(plan::read(text, ops::all())).value());
  return std::move(compile(graph)).value();
}

// Every task of a unit takes the time that `seconds` lists for what the unit computes.
Timeline timeline_of(const Program& program, const std::map<std::string, double>& seconds) {
  Timeline timeline;
  for (const Task& task : program.tasks) {
    const double taken = seconds.at(describe(program, program.units[task.unit]));
    timeline.tasks.push_back({timeline.seconds, timeline.seconds + taken, 0});
    timeline.seconds += taken;
  }
  return timeline;
}

using Seconds = std::vector<double>;

TEST(Attribution, NodesShareTheTimeOfTheirUnitByEstimates) {
  const Program program = compiled(kPlan);
  ASSERT_EQ(describe(program, program.units[3]), "exp, relu, reduce");
  const Timeline timeline =
      timeline_of(program, {{"contract", 10}, {"exp, relu, reduce", 8}, {"combine", 0}, {"copy", 0}});
  const Seconds estimates = {0, 0, 5, 1, 1, 2, 0, 0};
  const Attribution found = attribute(program, {{timeline}}, estimates, 1);
  EXPECT_EQ(found.node_seconds, (Seconds{0, 0, 10, 2, 2, 4, 0, 0}));
  EXPECT_EQ(found.other_seconds, 0);
  EXPECT_EQ(found.busy_seconds, 18);
  EXPECT_EQ(found.step_seconds, 18);
  EXPECT_EQ(found.busy(), 1);
  EXPECT_EQ(found.steps, 1u);
}

TEST(Attribution, NodesShareEquallyWithoutEstimates) {
  const Program program = compiled(kPlan);
  const Timeline timeline =
      timeline_of(program, {{"contract", 10}, {"exp, relu, reduce", 6}, {"combine", 0}, {"copy", 0}});
  EXPECT_EQ(attribute(program, {{timeline}}, Seconds(8), 1).node_seconds, (Seconds{0, 0, 10, 2, 2, 2, 0, 0}));
}

// The combine finishes the mean. One copy moves the relu's result, although its buffer belongs to
// the contraction and is named after it; two copies move sources, which no node computes.
TEST(Attribution, CopiesAndCombinesBelongToTheNodeOfTheValue) {
  const Program program = compiled(kPlan);
  const Timeline timeline =
      timeline_of(program, {{"contract", 0}, {"exp, relu, reduce", 0}, {"combine", 5}, {"copy", 3}});
  const Attribution found = attribute(program, {{timeline}}, Seconds(8, 1), 1);
  EXPECT_EQ(found.node_seconds, (Seconds{0, 0, 0, 0, 3, 5, 0, 0}));
  EXPECT_EQ(found.other_seconds, 6);
  EXPECT_EQ(found.busy_seconds, 14);
}

// A step that the machine interrupts must count only once.
TEST(Attribution, UsesTheMedianOfEachTaskOverSteps) {
  const Program program = compiled(kPlan);
  const auto step = [&](double contract) {
    return timeline_of(program,
                       {{"contract", contract}, {"exp, relu, reduce", 0}, {"combine", 0}, {"copy", 1}});
  };
  const Timeline odd[] = {step(2), step(1000), step(1)};
  EXPECT_EQ(attribute(program, odd, Seconds(8), 1).node_seconds[2], 2);
  EXPECT_EQ(attribute(program, odd, Seconds(8), 1).step_seconds, 5);
  const Timeline even[] = {step(4), step(1000), step(1), step(2)};
  const Attribution found = attribute(program, even, Seconds(8), 1);
  EXPECT_EQ(found.node_seconds[2], 3);
  EXPECT_EQ(found.step_seconds, 6);
  EXPECT_EQ(found.steps, 4u);
}

TEST(Attribution, IsEmptyWithoutSteps) {
  const Attribution found = attribute(compiled(kPlan), {}, Seconds(8), 2);
  EXPECT_EQ(found.node_seconds, Seconds(8));
  EXPECT_EQ(found.step_seconds, 0);
  EXPECT_EQ(found.busy(), 0);
}

TEST(Attribution, RejectsTimelinesOfAnotherProgram) {
  EXPECT_THROW(attribute(compiled(kPlan), {{Timeline{}}}, Seconds(8), 1), InternalError);
  EXPECT_THROW(attribute(compiled(kPlan), {}, Seconds(7), 1), InternalError);
}

// For a real run, no time is lost, and only executed nodes took time.
TEST(Attribution, AccountsForAllTime) {
  const cluster::Device device{"core", {1e9, 1e9}, 1e9, 1e9, 1e-6};
  const std::vector<language::SizeOverride> small = {{"b", 2, {}}, {"s", 5, {}},      {"d", 8, {}},
                                                     {"h", 2, {}}, {"layers", 2, {}}, {"v", 7, {}}};
  for (const int workers : {1, 3}) {
    const plan::Graph graph = exec::training_plan("char_gpt", small);
    const auto rank = exec::start(graph, workers);
    Random random(1);
    exec::fill(*rank, exec::random_sources(graph, 7, random));
    std::vector<Timeline> timelines(5);
    for (Timeline& timeline : timelines) EXPECT_TRUE(rank->step(timeline).ok());
    const Seconds best = explain::seconds_at_best(graph, device);
    const Attribution found = attribute(rank->program(), timelines, best, workers);
    const double nodes = std::accumulate(found.node_seconds.begin(), found.node_seconds.end(), 0.0);
    EXPECT_NEAR(nodes + found.other_seconds, found.busy_seconds, 1e-9);
    EXPECT_GT(found.busy(), 0);
    std::vector<bool> runs(graph.node_count());
    for (const Unit& unit : rank->program().units)
      for (const plan::NodeId node : unit.nodes) runs[node.value] = true;
    for (std::size_t n = 0; n < runs.size(); ++n)
      EXPECT_TRUE(runs[n] || found.node_seconds[n] == 0) << plan::print(graph, plan::NodeId(n));
  }
}

}  // namespace
}  // namespace weft::program
