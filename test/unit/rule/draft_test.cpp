// A plan during rewriting: which nodes die, which stay, which merge, and undo.
#include "weft/rules/rule/draft.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include "rewriting_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"

namespace weft::rule {
namespace {

using plan::NodeId;

std::vector<std::uint32_t> numbers(const std::vector<NodeId>& nodes) {
  std::vector<std::uint32_t> list;
  for (const NodeId node : nodes) list.push_back(node.value);
  return list;
}
using Numbers = std::vector<std::uint32_t>;

// The first match of a rule, by name.
Match first(const Draft& draft, const std::vector<Rule>& rules, std::string_view name) {
  for (Match& match : match_one_by_one(draft, rules))
    if (rules[match.rule].name == name) return std::move(match);
  ADD_FAILURE() << name << " matches nowhere";
  return {};
}

Result<Change> rewrite(Draft& draft, std::string_view name) {
  const Match match = first(draft, some_rules(), name);
  return draft.apply(some_rules()[match.rule], match);
}

TEST(Draft, EqualsTheOriginalPlan) {
  const plan::Graph graph = plan_of(R"(plan small
%0 = input {name=x, type=f32[b=2,d=3]}
%1 = relu %0 @hidden
%2 = add %1, %0
return y=%2
)");
  const Draft draft(graph);
  EXPECT_EQ(plan::print(draft.finish()), plan::print(graph));
  EXPECT_EQ(draft.live_count(), 3u);
}

TEST(Draft, DropsUnusedNodes) {
  const Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0
%2 = neg %0
return y=%2
)"));
  EXPECT_EQ(numbers(draft.nodes()), (Numbers{0, 2}));
}

TEST(Draft, MergesEqualNodes) {
  const Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0
%2 = relu %0
%3 = add %1, %2
return y=%3, z=%2
)"));
  EXPECT_EQ(numbers(draft.nodes()), (Numbers{0, 1, 3}));
  EXPECT_EQ(draft.inputs(NodeId(3))[0], draft.inputs(NodeId(3))[1]);
  EXPECT_EQ(draft.readers(plan::ValueId(1)).size(), 1u);
}

TEST(Draft, ReplacesAValueAndReportsChanges) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0
%2 = relu %1
%3 = exp %2
return y=%3, z=%2
)"));
  const std::string before = describe(draft);
  const auto change = rewrite(draft, "relu_twice");
  ASSERT_TRUE(change.ok()) << change.error().message;
  EXPECT_EQ(numbers(change->added), Numbers{});
  EXPECT_EQ(numbers(change->removed), Numbers{2});
  EXPECT_EQ(numbers(change->touched), (Numbers{1, 3}));
  EXPECT_EQ(numbers(change->rewired), Numbers{3});
  EXPECT_TRUE(draft.is_output(plan::ValueId(1)));
  EXPECT_EQ(plan::print(draft.finish()), R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0 : f32[d=3]
%2 = exp %1 : f32[d=3]
return y=%2, z=%1
)");
  const Change back = draft.undo();
  EXPECT_EQ(numbers(back.added), Numbers{2});
  EXPECT_EQ(numbers(back.removed), Numbers{});
  EXPECT_EQ(describe(draft), before);
  EXPECT_EQ(draft.depth(), 0u);
}

TEST(Draft, KeepsMatchedNodesWithOtherReaders) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %0, %1
%3 = mul %2, %1
%4 = exp %2
return y=%3, e=%4
)"));
  ASSERT_TRUE(rewrite(draft, "multiply_out").ok());
  EXPECT_TRUE(draft.alive(NodeId(2)));
  EXPECT_FALSE(draft.alive(NodeId(3)));
  EXPECT_EQ(draft.live_count(), 7u);
}

TEST(Draft, MergesNodesThatBecomeEqual) {
  // Once neg(neg(x)) is x, the two exps have equal operands, and so do their readers.
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = neg %0
%2 = neg %1
%3 = exp %0
%4 = exp %2
%5 = sin %3
%6 = sin %4
return y=%5, z=%6
)"));
  const std::string before = describe(draft);
  ASSERT_TRUE(rewrite(draft, "cancel_negations").ok());
  EXPECT_EQ(numbers(draft.nodes()), (Numbers{0, 3, 5}));
  EXPECT_EQ(draft.outputs()[0].value, draft.outputs()[1].value);
  draft.undo();
  EXPECT_EQ(describe(draft), before);
}

TEST(Draft, NewNodesGetTheLatestPhaseOfTheMatch) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %0, %1
%3 = mul %2, %1 in backward
%4 = neg %3 in update
return y=%4, e=%2
)"));
  ASSERT_TRUE(rewrite(draft, "multiply_out").ok());
  const plan::Graph plan = draft.finish();
  EXPECT_TRUE(plan::verify(plan).ok());
  EXPECT_EQ(plan::print(plan), R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %0, %1 : f32[d=3]
%3 = mul %0, %1 : f32[d=3] in backward
%4 = mul %1, %1 : f32[d=3] in backward
%5 = add %3, %4 : f32[d=3] in backward
%6 = neg %5 : f32[d=3] in update
return y=%6, e=%2
)");
}

TEST(Draft, ALaterPhaseMayReadFromAnEarlierOne) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0
%2 = relu %1 in backward
%3 = exp %2 in backward
return y=%3, z=%1
)"));
  ASSERT_TRUE(rewrite(draft, "relu_twice").ok());
  EXPECT_EQ(plan::print(draft.finish()), R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0 : f32[d=3]
%2 = exp %1 : f32[d=3] in backward
return y=%2, z=%1
)");
}

// The backward pass recomputes it so that it need not be kept.
TEST(Draft, KeepsEqualNodesOfTwoPhases) {
  const plan::Graph graph = plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = exp %0
%2 = exp %0 in backward
%3 = mul %2, %0 in backward
return y=%1, z=%3
)");
  const Draft draft(graph);
  EXPECT_EQ(plan::print(draft.finish()), plan::print(graph));
  const Draft kept(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = exp %0
%2 = mul %1, %0 in backward
return y=%1, z=%2
)"));
  EXPECT_NE(draft.hash(), kept.hash());
}

TEST(Draft, KeepsNodesOfTwoPhasesThatBecomeEqual) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = neg %0
%2 = neg %1
%3 = exp %0
%4 = exp %2 in backward
return y=%3, z=%4
)"));
  ASSERT_TRUE(rewrite(draft, "cancel_negations").ok());
  EXPECT_EQ(numbers(draft.nodes()), (Numbers{0, 3, 4}));
}

TEST(Draft, RejectsReadsFromALaterPhase) {
  // The merged product would belong to the backward pass, and exp reads one half of it in the
  // forward pass.
  const auto merged = [](std::string_view phase_of_reader) {
    Draft draft(plan_of(fmt::format(R"(plan small
%0 = input {{name=x, type=f32[b=2,d=3]}}
%1 = input {{name=v, type=f32[d=3,f=2]}}
%2 = input {{name=w, type=f32[d=3,g=2]}}
%3 = contract %0, %1 {{to=[b,f]}}
%4 = contract %0, %2 {{to=[b,g]}} in backward
%5 = exp %3 in {}
return y=%5, z=%4
)",
                                    phase_of_reader)));
    const std::string before = describe(draft);
    const auto change = rewrite(draft, "merge_products");
    if (!change.ok()) {
      EXPECT_EQ(describe(draft), before);
      return change.error().message;
    }
    const Status verified = plan::verify(draft.finish());
    return verified.ok() ? std::string("merged") : verified.error().message;
  };
  EXPECT_EQ(merged("forward"),
            "the rewrite would make node %5 (exp) of the forward phase read from the backward phase");
  EXPECT_EQ(merged("backward"), "merged");
}

TEST(Draft, RejectsACycle) {
  // q depends on p indirectly: merging the two would make p wait for itself.
  const plan::Graph graph = plan_of(R"(plan small
%0 = input {name=x, type=f32[b=2,d=3]}
%1 = input {name=v, type=f32[d=3,f=2]}
%2 = contract %0, %1 {to=[b,f]}
%3 = contract %0, %2 {to=[d,f]}
%4 = exp %3
%5 = sin %4
%6 = exp %5
%7 = sin %6
%8 = exp %7
%9 = sin %8
%10 = exp %9
%11 = sin %10
%12 = exp %11
%13 = sin %12
%14 = contract %0, %13 {to=[b,f]}
return y=%14
)");
  Draft draft(graph);
  const std::string before = describe(draft);
  bool tried = false;
  for (const Match& match : match_one_by_one(draft, some_rules())) {
    if (match.nodes != std::vector<NodeId>{NodeId(2), NodeId(14)}) continue;
    tried = true;
    const auto change = draft.apply(some_rules()[match.rule], match);
    ASSERT_FALSE(change.ok());
    EXPECT_NE(change.error().message.find("cycle"), std::string::npos) << change.error().message;
    EXPECT_EQ(describe(draft), before);
  }
  EXPECT_TRUE(tried);
}

TEST(Draft, RejectsAStaleMatch) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = relu %0
%2 = relu %1
return y=%2
)"));
  const Match match = first(draft, some_rules(), "relu_twice");
  ASSERT_TRUE(draft.apply(some_rules()[match.rule], match).ok());
  const auto again = draft.apply(some_rules()[match.rule], match);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("out of date"), std::string::npos) << again.error().message;
  EXPECT_EQ(draft.depth(), 1u);
}

TEST(Draft, RejectsNoChange) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[a=2,b=2]}
%1 = relu %0
return y=%1
)"));
  const std::vector<Rule> rules = rules_of(R"(
rule stay explore
  why   a case
  given x[I]
  left  y = relu(x)
  right y = relu(x)
)");
  const auto change = draft.apply(rules[0], first(draft, rules, "stay"));
  ASSERT_FALSE(change.ok());
  EXPECT_EQ(change.error().message, "the right side equals the left side");
}

TEST(Draft, ReusesExistingNodes) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %0, %1
%3 = mul %2, %1
return y=%3
)"));
  ASSERT_TRUE(rewrite(draft, "multiply_out").ok());
  const std::size_t stored = draft.graph().node_count();
  const std::uint64_t hash = draft.hash();
  for (int turn = 0; turn < 5; ++turn) {
    draft.undo();
    ASSERT_TRUE(rewrite(draft, "multiply_out").ok());
  }
  EXPECT_EQ(draft.graph().node_count(), stored);
  EXPECT_EQ(draft.hash(), hash);
}

TEST(Draft, NewNodesGetTheLabelAndScopeOfTheOld) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %0, %1 @block.3.sum
%3 = mul %2, %1 @block.3.scaled
return y=%3
)"));
  ASSERT_TRUE(rewrite(draft, "multiply_out").ok());
  const plan::Graph plan = draft.finish();
  const plan::Node& last = plan.node(NodeId(plan.node_count() - 1));
  EXPECT_EQ(plan.path(last.scope, last.label), "block.3.scaled");
}

TEST(Draft, ACloneIsIndependent) {
  Draft draft(plan_of(R"(plan small
%0 = input {name=x, type=f32[d=3]}
%1 = neg %0
%2 = neg %1
%3 = exp %2
return y=%3
)"));
  const std::string before = describe(draft);
  Draft copy = draft.clone();
  ASSERT_TRUE(rewrite(copy, "cancel_negations").ok());
  EXPECT_EQ(describe(draft), before);
  EXPECT_EQ(copy.live_count(), 2u);
  copy.undo();
  EXPECT_EQ(describe(copy), before);
}

// Random rewrites of random plans: the result is always a valid plan with the same values, and undo
// restores the original.
RC_GTEST_PROP(Draft, KeepsValuesAndUndoes, (std::uint64_t seed)) {
  Random random(seed);
  const plan::Graph graph = random_plan(random, 16);
  const auto expected = outputs_of(graph);
  Draft draft(graph);
  std::vector<std::string> past = {describe(draft)};
  for (int turn = 0; turn < 7; ++turn) {
    if (draft.depth() > 0 && random.below(3) == 0) {
      draft.undo();
      past.pop_back();
      RC_ASSERT(describe(draft) == past.back());
      continue;
    }
    const std::vector<Match> matches = match_one_by_one(draft, some_rules());
    if (matches.empty()) break;
    const Match& match = matches[random.below(matches.size())];
    if (!draft.apply(some_rules()[match.rule], match).ok()) {
      RC_ASSERT(describe(draft) == past.back());
      continue;
    }
    past.push_back(describe(draft));
    const plan::Graph plan = draft.finish();
    RC_ASSERT(plan::verify(plan).ok());
    RC_ASSERT(plan.node_count() == draft.live_count());
    RC_ASSERT(Draft(plan).hash() == draft.hash());
    RC_ASSERT(Draft(plan).live_count() == draft.live_count());  // no equal nodes are left
    RC_ASSERT(agree(outputs_of(plan), expected));
  }
  while (draft.depth() > 0) draft.undo();
  RC_ASSERT(describe(draft) == past.front());
}

}  // namespace
}  // namespace weft::rule
