// Where rules match: structure, orders, index variables, attributes and guards; and three ways to
// find the matches.
#include "weft/rules/rule/match.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "rewriting_case.h"
#include "weft/base/file.h"
#include "weft/rules/rule/instance.h"

namespace weft::rule {
namespace {

using plan::NodeId;

// "rule: nodes / values / index bindings", one line per match.
std::string text_of(const std::vector<Match>& matches, const std::vector<Rule>& rules, const Draft& draft) {
  std::string text;
  for (const Match& match : matches) {
    const Rule& rule = rules[match.rule];
    text += rule.name + ":";
    for (const NodeId node : match.nodes) text += fmt::format(" %{}", node.value);
    for (std::size_t i = 0; i < rule.inputs.size(); ++i)
      text += fmt::format(" {}={}", rule.inputs[i].name, match.values[i].value);
    for (std::size_t i = 0; i < rule.indices.size(); ++i) {
      text += fmt::format(" {}=", rule.indices[i].name);
      for (const Symbol index : match.bindings.indices[i]) text += draft.graph().text(index);
    }
    text += '\n';
  }
  return text;
}

// All matches of the rules in a plan, found by the automaton and confirmed one by one.
std::string matches_in(std::string_view plan, std::string_view rule_text) {
  const std::vector<Rule> rules = rules_of(rule_text);
  const Draft draft(plan_of(plan));
  const Automaton automaton(rules);
  const std::string text = text_of(automaton.all(draft), rules, draft);
  EXPECT_EQ(text, text_of(match_one_by_one(draft, rules), rules, draft));
  return text;
}

std::string declines_in(std::string_view plan, std::string_view rule_text) {
  const std::vector<Rule> rules = rules_of(rule_text);
  const Draft draft(plan_of(plan));
  const Automaton automaton(rules);
  std::string text;
  for (const NodeId node : draft.nodes()) {
    std::vector<Match> found;
    std::vector<Declined> declined;
    automaton.matches_at(draft, node, found, &declined);
    for (const Declined& miss : declined)
      text += fmt::format("{}: {}\n", rules[miss.rule].name, miss.because);
  }
  return text;
}

constexpr std::string_view kMergeProducts = R"(
rule merge_products explore
  why   one wide product instead of two narrow ones
  given x[B, K], v[K, n], w[K, m]
  left  p = contract(x, v, to=[B, n])
        q = contract(x, w, to=[B, m])
  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
        p = slice(c, along=n, begin=0, end=size(v, n))
        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
)";

TEST(Match, ReachesTheSecondOutputThroughAReader) {
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[b=2,s=3,d=4]}
%1 = parameter {name=v, type=f32[d=4,f=5], init=normal, b=1}
%2 = parameter {name=w, type=f32[d=4,g=6], init=normal, b=1}
%3 = contract %0, %1 {to=[b,s,f]}
%4 = contract %2, %0 {to=[g,s,b]}
return y=%3, z=%4
)",
                       kMergeProducts),
            "merge_products: %3 %4 x=0 v=1 w=2 B=bs K=d n=f m=g\n"
            "merge_products: %4 %3 x=0 v=2 w=1 B=bs K=d n=g m=f\n");
}

TEST(Match, TwoVariablesMayBindOneIndex) {
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = parameter {name=v, type=f32[d=4,f=5], init=normal, b=1}
%2 = parameter {name=w, type=f32[d=4,f=5], init=normal, b=1}
%3 = contract %0, %1 {to=[b,f]}
%4 = contract %0, %2 {to=[b,f]}
return y=%3, z=%4
)",
                       kMergeProducts),
            "merge_products: %3 %4 x=0 v=1 w=2 B=b K=d n=f m=f\n"
            "merge_products: %4 %3 x=0 v=2 w=1 B=b K=d n=f m=f\n");
}

TEST(Match, DeclinesAnUnboundIndex) {
  // h occurs in all five values, and no variable stands for it.
  const std::string_view plan = R"(plan p
%0 = input {name=x, type=f32[h=2,b=2,d=4]}
%1 = parameter {name=v, type=f32[h=2,d=4,f=5], init=normal, b=1}
%2 = parameter {name=w, type=f32[h=2,d=4,g=5], init=normal, b=1}
%3 = contract %0, %1 {to=[h,b,f]}
%4 = contract %0, %2 {to=[h,b,g]}
return y=%3, z=%4
)";
  EXPECT_EQ(matches_in(plan, kMergeProducts), "");
  EXPECT_EQ(declines_in(plan, kMergeProducts),
            "merge_products: index variables: none can stand for index h in the values that have it\n"
            "merge_products: index variables: none can stand for index h in the values that have it\n");
}

TEST(Match, ALowerCaseVariableBindsTheLastIndexThatFits) {
  const std::string_view plan = R"(plan p
%0 = input {name=x, type=f32[b=2,s=3,d=4]}
%1 = exp %0
return y=%1
)";
  const std::string_view rule = R"(
rule one_of_many explore
  why   a case
  given x[I, n]
  left  y = exp(x)
  right y = exp(x)

rule just_one explore
  why   a case
  given x[n]
  left  y = exp(x)
  right y = exp(x)
)";
  EXPECT_EQ(matches_in(plan, rule), "one_of_many: %1 x=0 I=bs n=d\n");
  EXPECT_EQ(declines_in(plan, rule), "just_one: index variables: no consistent assignment for index s\n");
}

TEST(Match, TriesCommutativeOperandsInEachOrderOnce) {
  const std::string_view rule = R"(
rule double normalize
  why   a case
  given x[I], y[I]
  left  s = add(mul(x, y), y)
  right s = mul(add(x, y), y)
)";
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = mul %0, %1
%3 = add %1, %2
%4 = mul %3, %3
%5 = add %3, %4
return y=%5
)",
                       rule),
            "double: %2 %3 x=0 y=1 I=d\n"
            "double: %4 %5 x=3 y=3 I=d\n");
}

TEST(Match, KeepsTheOrderOfOtherOperands) {
  const std::string_view rule = R"(
rule cancel normalize
  why   a case
  given x[I], y[I]
  left  s = sub(add(x, y), y)
  right s = x
)";
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[d=3]}
%1 = input {name=z, type=f32[d=3]}
%2 = add %1, %0
%3 = sub %2, %1
%4 = sub %1, %2
return y=%3, z=%4
)",
                       rule),
            "cancel: %2 %3 x=0 y=1 I=d\n");
}

TEST(Match, ContractNeedsTheSameNumberOfOperands) {
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = input {name=y, type=f32[d=4,f=5]}
%2 = contract %0, %1, %1 {to=[b,f]}
%3 = contract %0, %1 {to=[b,f]}
return y=%2, z=%3
)",
                       R"(
rule product explore
  why   a case
  given x[B, K], y[K, N]
  left  p = contract(x, y, to=[B, N])
  right p = contract(y, x, to=[B, N])
)"),
            "product: %3 x=0 y=1 B=b K=d N=f\n"
            "product: %3 x=1 y=0 B=f K=d N=b\n");
}

TEST(Match, AttributesBindAndMustAgree) {
  const std::string_view rule = R"(
rule slices explore
  why   a case
  given x[I, n]
  left  y = slice(slice(x, along=n, begin=a, end=b), along=n, begin=0, end=a)
  right y = slice(x, along=n, begin=a, end=a + a)
)";
  const std::string_view plan = R"(plan p
%0 = input {name=x, type=f32[b=4,d=8]}
%1 = slice %0 {along=d, begin=2, end=8}
%2 = slice %1 {along=d, begin=0, end=2}
%3 = slice %1 {along=d, begin=0, end=3}
%4 = slice %1 {along=d, begin=1, end=2}
%5 = slice %1 {along=b, begin=0, end=2}
return y=%2, z=%3, u=%4, v=%5
)";
  EXPECT_EQ(matches_in(plan, rule), "slices: %1 %2 x=0 I=b n=d\n");
  EXPECT_EQ(declines_in(plan, rule),
            "slices: end of slice differs from an earlier binding of a\n"
            "slices: begin of slice is 1, not 0\n"
            "slices: index variables: along of slice is [n] in the rule, found [b]\n");
}

TEST(Match, OmittedAttributesMeanTheDefault) {
  const std::string_view plan = R"(plan p
%0 = input {name=x, type=f32[b=1,c=2,h=4,w=4]}
%1 = parameter {name=v, type=f32[o=2,i=2,r=1,q=1], init=normal, b=1}
%2 = conv2d %0, %1
%3 = conv2d %0, %1 {stride=2}
%4 = conv2d %0, %1 {padding=1}
return y=%2, z=%3, u=%4
)";
  const std::string_view rule = R"(
rule convolution explore
  why   a case
  given x[b, c, h, w] in order, v[o, i, r, q] in order
  left  y = conv2d(x, v, padding=p)
  right y = conv2d(x, v, padding=p)
)";
  EXPECT_EQ(matches_in(plan, rule),
            "convolution: %2 x=0 v=1 b=b c=c h=h w=w o=o i=i r=r q=q\n"
            "convolution: %4 x=0 v=1 b=b c=c h=h w=w o=o i=i r=r q=q\n");
  EXPECT_EQ(declines_in(plan, rule), "convolution: stride of conv2d is 2, not 1\n");
}

TEST(Match, AnOperatorVariableBindsOneOperator) {
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = exp %0
%2 = exp %1
%3 = sin %1
%4 = softmax %0 {over=[d]}
%5 = softmax %4 {over=[d]}
return y=%2, z=%3, u=%5
)",
                       R"(
rule twice explore
  why   a case
  any   unary f
  given x[I]
  left  y = f(f(x))
  right y = f(f(x))
)"),
            "twice: %1 %2 x=0 I=bd\n");
}

TEST(Match, DeclinedGuardsReportTheirNumbers) {
  const std::string guarded = std::string(kMergeProducts) + "  when  size(v, n) <= 4 and real(x)\n";
  const std::string_view plan = R"(plan p
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = parameter {name=v, type=f32[d=4,f=5], init=normal, b=1}
%2 = parameter {name=w, type=f32[d=4,g=3], init=normal, b=1}
%3 = contract %0, %1 {to=[b,f]}
%4 = contract %0, %2 {to=[b,g]}
return y=%3, z=%4
)";
  EXPECT_EQ(matches_in(plan, guarded), "merge_products: %4 %3 x=0 v=2 w=1 B=b K=d n=g m=f\n");
  EXPECT_EQ(declines_in(plan, guarded), "merge_products: guard: size(v, n) <= 4 does not hold: 5 and 4\n");
}

TEST(Match, DeclinesOnOverflow) {
  const std::string guarded = std::string(kMergeProducts) + "  when  9223372036854775807 * size(v, n) >= 0\n";
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = parameter {name=v, type=f32[d=4,f=5], init=normal, b=1}
%2 = parameter {name=w, type=f32[d=4,g=3], init=normal, b=1}
%3 = contract %0, %1 {to=[b,f]}
%4 = contract %0, %2 {to=[b,g]}
return y=%3, z=%4
)",
                       guarded),
            "");
}

TEST(Match, RulesWithACommonPrefixShareTests) {
  const Automaton automaton(some_rules());
  EXPECT_LT(automaton.states(), automaton.tests_one_by_one());
  std::vector<Rule> twice = some_rules();
  twice.insert(twice.end(), some_rules().begin(), some_rules().end());
  const Automaton doubled(twice);
  EXPECT_EQ(doubled.states(), automaton.states());
  EXPECT_EQ(doubled.tests_one_by_one(), 2 * automaton.tests_one_by_one());
}

TEST(Match, InfersALayoutFromTheOperatorThatNeedsIt) {
  const std::string_view rule = R"(
rule add_partials explore
  why   one reduction instead of two
  given x[I] partial(sum) on a, y[I] partial(sum) on a
  left  s = add(all-reduce(x, axis=a), all-reduce(y, axis=a))
  right s = all-reduce(add(x, y), axis=a)
)";
  EXPECT_EQ(matches_in(R"(plan p
%0 = input {name=x, type=f32[d=4], layout="partial(sum) on gpu"}
%1 = input {name=y, type=f32[d=4], layout="partial(sum) on gpu"}
%2 = all-reduce %0 {axis=gpu}
%3 = all-reduce %1 {axis=gpu}
%4 = all-reduce %1 {axis=node}
%5 = add %2, %3
%6 = add %2, %4
return s=%5, t=%6
)",
                       rule),
            "add_partials: %2 %3 %5 x=0 y=1 I=d\n"
            "add_partials: %3 %2 %5 x=1 y=0 I=d\n");
}

TEST(Match, LooksUpALayoutOnTheMesh) {
  const std::vector<Rule> rules = rules_of(R"(
rule scale_partial explore
  why   a case
  given x[I] partial(sum) on a
  left  y = neg(x)
  right y = neg(x)
)");
  Draft draft(plan_of(R"(plan p
%0 = input {name=x, type=f32[d=4], layout="partial(sum) on gpu"}
%1 = neg %0
%2 = neg %1
return y=%2
)"));
  const Automaton automaton(rules);
  EXPECT_TRUE(automaton.all(draft).empty());
  draft.symbol("gpu");
  const plan::Mesh mesh{{{"node", 2}, {"gpu", 2}}};
  const plan::Layout plain = plan::Layout::replicated(mesh);
  plan::Layout partial = plain;
  partial.axes[1] = plan::AxisLayout::partial(plan::Monoid::sum);
  const std::vector<plan::Layout> layouts = {plain, partial};  // the layout of the third value is unknown
  const std::vector<Match> found = automaton.all(draft, {&mesh, layouts});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].root, NodeId(2));
  EXPECT_EQ(match_one_by_one(draft, rules, {&mesh, layouts}), found);
}

// An instance at which a rule was proven matches again and can be rewritten.
TEST(Match, EveryShippedRuleMatchesItsInstances) {
  std::size_t drawn = 0, matched = 0;
  for (const auto& file : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/rules")) {
    if (file.path().extension() != ".rules") continue;
    for (const Rule& rule : rules_of(*read_file(file.path().string(), 1 << 20))) {
      const Automaton automaton(std::span(&rule, 1));
      Random random(11);
      for (int turn = 0; turn < 2; ++turn) {
        const auto instance = draw_instance(rule, random);
        ASSERT_TRUE(instance.ok()) << rule.name << ": " << instance.error().message;
        Draft draft(instance->graph);
        for (const plan::MeshAxis& axis : instance->mesh.axes) draft.symbol(axis.name);
        const bool merged = std::ranges::any_of(instance->left, [&](plan::ValueId value) {
          return !draft.alive(draft.graph().value(value).producer);
        });
        if (merged) continue;
        Placement placement;
        if (instance->distributed()) placement = {&instance->mesh, instance->layouts};
        const std::vector<Match> all = automaton.all(draft, placement);
        EXPECT_EQ(all, match_one_by_one(draft, std::span(&rule, 1), placement)) << rule.name;
        const auto found = std::ranges::find(all, instance->left, &Match::values);
        ++drawn;
        // For sliced indices, the guard may reject the only assignment that is tried.
        ASSERT_TRUE(found != all.end() || instance->distributed()) << rule.name;
        if (found == all.end()) continue;
        ++matched;
        const auto change = draft.apply(rule, *found, &instance->mesh);
        const bool fits = change.ok() || instance->refusal.has_value() ||
                          change.error().message == "the right side equals the left side";
        EXPECT_TRUE(fits) << rule.name << ": " << change.error().message;
      }
    }
  }
  EXPECT_GT(drawn, 0u);
  EXPECT_GT(20 * matched, 19 * drawn);
}

// Random rewrites of random plans and their undo: the automaton, one rule at a time, and
// incrementally updated matches always agree.
RC_GTEST_PROP(Match, ThreeMatchersAgree, (std::uint64_t seed)) {
  Random random(seed);
  Draft draft(random_plan(random, 18));
  const Automaton automaton(some_rules());
  Matches matches(automaton, draft);
  for (int turn = 0; turn < 7; ++turn) {
    const std::vector<Match> all = automaton.all(draft);
    RC_ASSERT(all == match_one_by_one(draft, some_rules()));
    const std::vector<const Match*> kept = matches.all();
    RC_ASSERT(kept.size() == all.size() && matches.size() == all.size());
    for (std::size_t m = 0; m < all.size(); ++m) {
      RC_ASSERT(*kept[m] == all[m]);
      RC_ASSERT(kept[m]->bindings.indices == all[m].bindings.indices);
    }
    if (draft.depth() > 0 && random.below(3) == 0) {
      matches.update(draft, draft.undo());
    } else {
      if (all.empty()) break;
      const Match& match = all[random.below(all.size())];
      const auto change = draft.apply(some_rules()[match.rule], match);
      if (change.ok()) matches.update(draft, *change);
    }
  }
}

}  // namespace
}  // namespace weft::rule
