// Rules that rewrite communication: where they apply, where they decline, and that results stay the
// same.
#include "weft/planner/search/rewrite/rewrite_communication.h"

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "ranks_case.h"
#include "search_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/rules/rule/library.h"

namespace weft::search {
namespace {

// Two nodes of two devices; `across` bytes per second between nodes.
cluster::Cluster two_by_two(double across) {
  cluster::Cluster made{"pod", some_gpu(100e12), {}};
  const auto add = [&](std::string name, std::string wire, double rate) {
    cluster::Link link;
    link.name = std::move(wire);
    link.bytes_per_second = rate;
    link.latency_seconds = 2e-6;
    made.axes.push_back({std::move(name), 2, std::move(link)});
  };
  add("node", "ib", across);
  add("gpu", "nvlink", 400e9);
  return made;
}

std::size_t count(const plan::Graph& graph, const plan::Operator& op) {
  std::size_t found = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) found += graph.node(plan::NodeId(n)).op == &op;
  return found;
}

PredictedPlan predicted(distribute::DistributedPlan plan, const Machine& machine) {
  PredictedPlan made;
  const auto costs = machine.costs(plan.mesh).value();
  made.prediction = sim::predict(plan.graph, plan.mesh, plan.layouts, costs).value();
  made.plan = std::move(plan);
  return made;
}

// A distributed plan written by hand, and the same plan for one device.
struct Written {
  plan::Graph one_device;
  distribute::DistributedPlan plan;

  Written(std::string_view text, std::string_view mesh) {
    plan.graph = plan::read(text, ops::all()).value();
    plan.mesh = plan::read_mesh(mesh).value();
    plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
    one_device = plan.graph.clone();  // communication does nothing on one device
    plan.origin.resize(plan.graph.node_count());
  }
};

std::optional<rule::Rule> as_proven(const rule::Rule& rule) {
  planner::Warnings none;
  return planner::as_proven(rule, none);
}

RewrittenCommunication rewritten(const PredictedPlan& plan, const cluster::Cluster& cluster,
                                 const ProveRule& prove = as_proven) {
  return rewrite_communication(plan, machine_with_peak(cluster), cluster.device, rule::shipped_rules(), prove)
      .value();
}

void expect_proven(const plan::Graph& one_device, const distribute::DistributedPlan& plan) {
  const auto proof = distribute::prove(one_device, plan);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

constexpr std::string_view kTwoSums = R"(plan two_sums
%0 = input {name=x, type=f32[b=512,d=512], layout="sliced(d) on gpu"}
%1 = parameter {name=v, type=f32[d=512,f=512], layout="sliced(d) on gpu"}
%2 = parameter {name=w, type=f32[d=512,f=512], layout="sliced(d) on gpu"}
%3 = contract %0, %1 {to=[b,f]}
%4 = contract %0, %2 {to=[b,f]}
%5 = all-reduce %3 {axis=gpu}
%6 = all-reduce %4 {axis=gpu}
%7 = add %5, %6
return y=%7
)";

TEST(RewriteCommunication, TwoAddedSumsAreSentOnce) {
  const cluster::Cluster pod = two_by_two(10e9);
  const Written written(kTwoSums, "node=2, gpu=2");
  const PredictedPlan before = predicted(Written(kTwoSums, "node=2, gpu=2").plan, machine_with_peak(pod));
  const RewrittenCommunication found = rewritten(before, pod);
  ASSERT_TRUE(found.plan) << found.why_not;
  EXPECT_EQ(count(found.plan->plan.graph, ops::all_reduce()), 1u);
  EXPECT_LT(found.plan->prediction.seconds, 0.98 * before.prediction.seconds);
  EXPECT_FALSE(found.trail.empty());
}

TEST(RewriteCommunication, AnAllReduceThatIsSlicedBecomesAReduceScatter) {
  const cluster::Cluster pod = two_by_two(10e9);
  constexpr std::string_view text = R"(plan a_share
%0 = input {name=x, type=f32[b=512,d=512], layout="sliced(d) on gpu"}
%1 = parameter {name=w, type=f32[d=512,f=512], layout="sliced(d) on gpu"}
%2 = contract %0, %1 {to=[b,f]}
%3 = all-reduce %2 {axis=gpu}
%4 = slice-across %3 {axis=gpu, along=b}
%5 = relu %4
return y=%5
)";
  const PredictedPlan before = predicted(Written(text, "node=2, gpu=2").plan, machine_with_peak(pod));
  const RewrittenCommunication found = rewritten(before, pod);
  ASSERT_TRUE(found.plan) << found.why_not;
  EXPECT_EQ(count(found.plan->plan.graph, ops::all_reduce()), 0u);
  EXPECT_EQ(count(found.plan->plan.graph, ops::reduce_scatter()), 1u);
}

// Another node reads one of the sums: merged, both would still be sent.
TEST(RewriteCommunication, ASumWithOtherReadersStays) {
  const cluster::Cluster pod = two_by_two(10e9);
  std::string text(kTwoSums);
  text.replace(text.find("return y=%7"), std::string_view("return y=%7").size(),
               "%8 = exp %5\n%9 = exp %6\nreturn y=%7, p=%8, q=%9");
  const PredictedPlan before = predicted(Written(text, "node=2, gpu=2").plan, machine_with_peak(pod));
  const RewrittenCommunication found = rewritten(before, pod);
  EXPECT_FALSE(found.plan);
  EXPECT_TRUE(found.trail.empty());
  EXPECT_FALSE(found.why_not.empty());
}

TEST(RewriteCommunication, AnUnprovenRuleIsNeverApplied) {
  const cluster::Cluster pod = two_by_two(10e9);
  const PredictedPlan before = predicted(Written(kTwoSums, "node=2, gpu=2").plan, machine_with_peak(pod));
  std::vector<std::string> asked;
  const RewrittenCommunication found = rewritten(before, pod, [&](const rule::Rule& rule) {
    asked.push_back(rule.name);
    return std::optional<rule::Rule>();
  });
  EXPECT_FALSE(found.plan);
  EXPECT_FALSE(asked.empty());
  EXPECT_LT(asked.size(), 10u) << "only rules that would be used are proven";
}

// Gradients of a model whose batch is sliced along both axes are reduced hierarchically if the
// outer axis is slow.
TEST(RewriteCommunication, RanksTrainEquallyWithTheRewrittenPlan) {
  const session::Learner learner =
      session::learner("digits_mlp", {{"b", 32, {}}, {"f", 64, {}}}, train::Optimizer::sgd);
  const cluster::Cluster pod = two_by_two(1e6);
  const PredictedPlan before =
      predicted(session::spread(learner, "node=2: slice b; gpu=2: slice b"), machine_with_peak(pod));
  const RewrittenCommunication found = rewritten(before, pod);
  ASSERT_TRUE(found.plan) << found.why_not;
  EXPECT_LT(found.plan->prediction.seconds, before.prediction.seconds);
  EXPECT_GT(count(found.plan->plan.graph, ops::reduce_scatter()), 0u);
  expect_proven(learner.graph, found.plan->plan);

  const auto plain = session::train(learner, before.plan, session::on(4), 10);
  const auto two_levels = session::train(learner, found.plan->plan, session::on(4), 10);
  const session::Apart apart = session::apart(plain.weights, two_levels.weights);
  EXPECT_LT(apart.relative, 1e-5) << apart.worst;
  EXPECT_NE(plain.training.first_loss, plain.training.last_loss);  // the weights changed
}

// The same on equal links: two levels only add exchanges.
TEST(RewriteCommunication, KeepsThePlanIfTheStepGetsNoFaster) {
  const session::Learner learner =
      session::learner("digits_mlp", {{"b", 32, {}}, {"f", 64, {}}}, train::Optimizer::sgd);
  const cluster::Cluster pod = two_by_two(400e9);
  const PredictedPlan before =
      predicted(session::spread(learner, "node=2: slice b; gpu=2: slice b"), machine_with_peak(pod));
  const RewrittenCommunication found = rewritten(before, pod);
  EXPECT_FALSE(found.plan);
}

}  // namespace
}  // namespace weft::search
