// Permitted deviations of a plan from the model are rejected where they are not intended.
#include "weft/parallel/distribute/periodic_sums.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/distribute/without_codecs.h"
#include "weft/plan/graph/text.h"

namespace weft::distribute {
namespace {

const train::TrainingPlan& digits() {
  static const train::TrainingPlan plan =
      training_plan("digits_mlp", {{"b", 4, {}}, {"p", 2, {}}, {"f", 4, {}}, {"c", 3, {}}});
  return plan;
}

// The plan with a period for its all-reduces: period(index among all of them, phase); 1: none.
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

TEST(PermittedDeviations, AllGradientsMayBeReducedEveryFewSteps) {
  EXPECT_EQ(verdict("rank=2: slice b", [](int, bool) { return 1; }), "");
  EXPECT_EQ(verdict("rank=2: slice b", [](int, bool is_forward) { return is_forward ? 1 : 8; }), "");
}

TEST(PermittedDeviations, TheLossAndTheCountMayNotBeReducedEveryFewSteps) {
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

TEST(PermittedDeviations, AllGradientsNeedTheSamePeriod) {
  int last = -1;
  verdict("rank=2: slice b", [&](int number, bool) { return last = number, 1; });
  EXPECT_NE(verdict("rank=2: slice b", [&](int number, bool) { return number == last ? 8 : 1; })
                .find("but other reductions run every 8"),
            std::string::npos);
  EXPECT_NE(verdict("rank=2: slice b",
                    [&](int number, bool is_forward) { return is_forward       ? 1
                                                              : number == last ? 8
                                                                               : 4; })
                .find("but other reductions run every 8"),
            std::string::npos);
}

TEST(PermittedDeviations, ShardedValuesMayNotBeReducedEveryFewSteps) {
  EXPECT_NE(verdict("rank=2: slice f", [](int, bool) { return 8; }), "");
  EXPECT_NE(verdict("node=2: slice b; gpu=2: slice b, shard optimizer",
                    [](int, bool is_forward) { return is_forward ? 1 : 8; }),
            "");
}

// A plan for two ranks, parsed from text and traced to the plan of one device.
DistributedPlan on_two_ranks(const std::string& text, const plan::Graph& one_device) {
  DistributedPlan plan;
  plan.graph = plan::read(text, ops::all()).value();
  plan.mesh.axes = {{"rank", 2}};
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  Origins origins = trace_origins(one_device, plan.graph).value();
  plan.opened = std::move(origins.opened);
  plan.origin = std::move(origins.origin);
  plan.own = std::move(origins.own);
  return plan;
}

PlanProof proof_of(const std::string& one_device, const std::string& text) {
  const plan::Graph graph = plan::read(one_device, ops::all()).value();
  return prove(graph, on_two_ranks(text, graph)).value();
}

TEST(PermittedDeviations, AnUnreducedGradientMayNotSkipAStep) {
  const std::string text =
      "plan p\n"
      "%0 = input {name=x, type=f32[b=4,p=3], layout=\"sliced(b) on rank\"}\n"
      "%1 = parameter {name=w, type=f32[p=3]}\n"
      "%2 = reduce %0 {kind=sum, to=[p]}\n"
      "%3 = all-reduce %2 {axis=rank, every=8}\n"
      "%4 = sgd %1, %3 {lr=0.1}\n";
  const auto broken = [](const std::string& plan) {
    const auto found = find_misplaced_period(on_two_ranks(plan, plan::read(plan, ops::all()).value()));
    return found ? found->what : "";
  };
  EXPECT_EQ(broken(text + "return \"next w\"=%4\n"), "");
  const std::string decides =
      "%5 = contract %3, %3 {to=[]}\n%6 = constant {value=1, dtype=f32}\n%7 = less %5, %6\n"
      "%8 = select %7, %4, %1\nreturn \"next w\"=%8\n";
  EXPECT_NE(broken(text + decides).find("skips a step based on a gradient that is not summed"),
            std::string::npos);
}

TEST(PermittedDeviations, OnlyGradientsMayBeDelayed) {
  const auto delayed = [](const std::string& text) {
    return find_delayed(plan::read(text, ops::all()).value()).size();
  };
  EXPECT_EQ(delayed("plan p\n"
                    "%0 = parameter {name=w, type=f32[p=3]}\n"
                    "%1 = state {name=late, type=f32[r=2,p=3], layout=\"sliced(r) on rank\"}\n"
                    "%2 = reduce %1 {kind=sum, to=[p]}\n"
                    "%3 = all-reduce %2 {axis=rank}\n"
                    "%4 = sgd %0, %3 {lr=0.1}\n"
                    "%5 = input {name=g, type=f32[p=3]}\n"
                    "%6 = addends %5 {axis=rank, into=r, count=2}\n"
                    "return \"next w\"=%4, \"next late\"=%6\n"),
            1u);
  EXPECT_EQ(delayed("plan p\n"
                    "%0 = state {name=late, type=f32[r=2], layout=\"sliced(r) on rank\"}\n"
                    "%1 = reduce %0 {kind=sum, to=[]}\n"
                    "%2 = all-reduce %1 {axis=rank}\n"
                    "%3 = input {name=x, type=f32[]}\n"
                    "%4 = addends %3 {axis=rank, into=r, count=2}\n"
                    "return loss=%2, \"next late\"=%4\n"),
            0u);
}

TEST(PermittedDeviations, ReportsRoundedPartialValues) {
  const std::string sources = "plan p\n%0 = parameter {name=w, type=bf16[]}\n%1 = cast %0 {to=f32}\n";
  const auto rounded = [&](const std::string& between, int last) {
    return proof_of(sources +
                        "%2 = input {name=x, type=f32[b=4]}\n%3 = reduce %2 {kind=sum, to=[]}\n"
                        "%4 = mul %3, %1\nreturn loss=%4\n",
                    sources +
                        "%2 = input {name=x, type=f32[b=4], layout=\"sliced(b) on rank\"}\n"
                        "%3 = reduce %2 {kind=sum, to=[]}\n" +
                        between +
                        fmt::format(
                            "%{0} = all-reduce %{1} {{axis=rank}}\n%{2} = mul %{0}, %1\nreturn loss=%{2}\n",
                            last + 1, last, last + 2))
        .rounded;
  };
  EXPECT_TRUE(rounded("", 3).empty());
  EXPECT_TRUE(rounded("%4 = cast %3 {to=bf16}\n%5 = cast %4 {to=f32}\n", 5).contains("loss"));
}

TEST(PermittedDeviations, DetectsDecisionsAddedByThePlan) {
  const std::string model =
      "plan p\n"
      "%0 = parameter {name=w, type=f32[p=3]}\n%1 = input {name=g, type=f32[p=3]}\n"
      "%2 = sgd %0, %1 {lr=0.1}\n"
      "%3 = state {name=step, type=i64[]}\n%4 = constant {value=1, dtype=i64}\n%5 = add %3, %4\n"
      "%6 = input {name=x, type=f32[]}\n%7 = constant {value=3, dtype=f32}\n%8 = less %6, %7\n"
      "%9 = select %8, %5, %3\n";
  const auto is_proven = [&](const std::string& more, int w, int step) {
    const auto returned = [](int next_w, int next_step) {
      return fmt::format("return \"next w\"=%{}, \"next step\"=%{}\n", next_w, next_step);
    };
    return proof_of(model + returned(2, 9), model + more + returned(w, step)).is_proven();
  };
  EXPECT_TRUE(is_proven("", 2, 9));
  // A weight stops changing when it reaches a number; a counter stops at a number.
  EXPECT_FALSE(is_proven(
      "%10 = constant {value=0.125, dtype=f32}\n%11 = equal %2, %10\n%12 = select %11, %0, %2\n", 12, 9));
  EXPECT_FALSE(is_proven(
      "%10 = constant {value=1000003, dtype=i64}\n%11 = equal %3, %10\n%12 = select %11, %3, %9\n", 2, 12));
}

TEST(PermittedDeviations, CodecsMustEncodeCommunication) {
  const std::string sources =
      "plan p\n%0 = parameter {name=w, type=f32[f=4,c=3]}\n%1 = input {name=g, type=f32[f=4,c=3]}\n"
      "%2 = sgd %0, %1 {lr=0.1}\n";
  const std::string coded =
      "%3 = slice-across %2 {axis=rank, along=f}\n"
      "%4 = encode %3 {codec=int8, block=8, segment=2, keep=[], into=code}\n"
      "%5 = all-gather %4 {axis=rank, along=code}\n"
      "%6 = decode %5 {codec=int8, block=8, segment=2, type=f32[f=4,c=3]}\n";
  const plan::Graph model = plan::read(sources + "return \"next w\"=%2\n", ops::all()).value();
  const auto exact = without_codecs(on_two_ranks(sources + coded + "return \"next w\"=%6\n", model));
  ASSERT_FALSE(exact.ok());
  EXPECT_NE(exact.error().message.find("never crossed"), std::string::npos) << exact.error().message;
}

}  // namespace
}  // namespace weft::distribute
