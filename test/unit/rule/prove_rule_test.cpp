// Rules are proven, guarded or refuted, with the right reason.
#include <gtest/gtest.h>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {
namespace {

Rule rule(std::string_view rest) {
  const auto rules = parse_rules("rule r explore\n" + std::string(rest), "a.rules", ops::all());
  EXPECT_TRUE(rules.ok()) << rules.error().message;
  return rules.ok() ? (*rules)[0] : Rule();
}

// Few shapes: enough for the rules here, and fast without optimization.
ProveOptions quick() {
  ProveOptions options;
  options.shapes = 24;
  options.max_order_runs = 64;
  return options;
}

Verdict judge(std::string_view rest) { return prove(rule(rest), quick()).verdict; }

TEST(ProveRule, ProvesTrueRules) {
  const Verdict verdict = judge(R"(
  given x[B, K], v[K, n], w[K, m]
  left  p = contract(x, v, to=[B, n])
        q = contract(x, w, to=[B, m])
  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
        p = slice(c, along=n, begin=0, end=size(v, n))
        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
)");
  EXPECT_EQ(verdict.judgement, Judgement::proven) << verdict.guard << verdict.reason;
  EXPECT_LT(verdict.error_probability, 1e-12);
  EXPECT_GE(verdict.shapes, 20);
  EXPECT_EQ(verdict.rounding, Rounding::exact);
}

TEST(ProveRule, ReportsHowRoundingChanges) {
  EXPECT_EQ(
      judge("given x[I], y[I], z[I]\n left s = add(add(x, y), z)\n right s = add(x, add(y, z))").rounding,
      Rounding::reassociates);
  EXPECT_EQ(judge("given x[I], y[I], z[I]\n left s = add(mul(x, z), mul(y, z))\n right s = mul(add(x, y), z)")
                .rounding,
            Rounding::changes);
  EXPECT_EQ(judge("given x[I]\n left y = relu(relu(x))\n right y = relu(x)").rounding, Rounding::exact);
}

TEST(ProveRule, RefutesWithASmallCase) {
  const Verdict verdict = judge("given x[I], y[I]\n left z = sub(x, y)\n right z = sub(y, x)");
  ASSERT_EQ(verdict.judgement, Judgement::refuted) << verdict.guard;
  ASSERT_EQ(verdict.counterexamples.size(), 1u);
  const Counterexample& found = verdict.counterexamples[0];
  ASSERT_EQ(found.inputs.size(), 2u);
  EXPECT_EQ(found.inputs[0].values.size(), 1u);  // a single element is enough
  EXPECT_NE(found.left, found.right);
  EXPECT_EQ(std::stod(found.left), -std::stod(found.right));
}

TEST(ProveRule, RefutesRulesThatNeedAnotherOrder) {
  EXPECT_EQ(judge("given x[I], y[I]\n left z = maximum(x, y)\n right z = minimum(x, y)").judgement,
            Judgement::refuted);
  EXPECT_EQ(judge("given x[I]\n left y = relu(neg(x))\n right y = neg(relu(x))").judgement,
            Judgement::refuted);
  EXPECT_EQ(judge("given x[I]\n left y = exp(neg(x))\n right y = neg(exp(x))").judgement, Judgement::refuted);
}

TEST(ProveRule, FindsGuards) {
  // Outputs of two convolutions may be merged if there is one group.
  const Verdict grouped = judge(R"(
  given x[b, c, h, w] in order, v[o, i, r, q] in order, u[o, i, r, q] in order
  left  y = concat(conv2d(x, v, groups=g), conv2d(x, u, groups=g), along=o)
  right y = conv2d(x, concat(v, u, along=o), groups=g)
  when  size(v, r) = size(u, r) and size(v, q) = size(u, q)
)");
  EXPECT_EQ(grouped.judgement, Judgement::guarded) << grouped.reason;
  EXPECT_EQ(grouped.guard, "g = 1");
  EXPECT_EQ(grouped.counterexamples.size(), 1u);

  const Verdict named = judge(R"(
  given x[A, K], y[K, N], z[N, M]
  left  p = contract(contract(x, y, to=[A, N]), z, to=[A, M])
  right p = contract(x, contract(y, z, to=[K, M]), to=[A, M])
)");
  EXPECT_EQ(named.judgement, Judgement::guarded) << named.reason;
  EXPECT_EQ(named.guard, "distinct(K, M)");

  const Verdict whole = judge(R"(
  given x[I], y[I], s[I]
  left  z = add(div(x, s), div(y, s))
  right z = div(add(x, y), s)
)");
  EXPECT_EQ(whole.judgement, Judgement::guarded) << whole.reason;
  EXPECT_EQ(whole.guard, "real(x)");
}

TEST(ProveRule, DetectsIllTypedRules) {
  const Verdict verdict =
      judge("given x[n], y[n]\n left z = add(x, y)\n right z = slice(x, along=n, begin=1, end=1)");
  EXPECT_EQ(verdict.judgement, Judgement::ill_typed);
  EXPECT_FALSE(verdict.reason.empty());
}

TEST(ProveRule, SupportsUnevenShardsAndMeshes) {
  EXPECT_EQ(judge(R"(
  given x[B, k] replicated on a, w[k, N] replicated on a
  left  y = contract(x, w, to=[B, N])
  right y = all-reduce(contract(slice-across(x, axis=a, along=k), slice-across(w, axis=a, along=k), to=[B, N]), axis=a)
  when  whole(x, k) and whole(w, k)
)")
                .judgement,
            Judgement::proven);
  // Partial values must not pass through a nonlinear function.
  const Verdict wrong = judge(R"(
  given x[I] partial(sum) on a
  left  y = relu(all-reduce(x, axis=a))
  right y = all-reduce(relu(x), axis=a)
)");
  EXPECT_NE(wrong.judgement, Judgement::proven);
  EXPECT_NE(wrong.judgement, Judgement::guarded) << wrong.guard;
  const Verdict layout = judge(R"(
  given x[n, I]
  left  y = all-gather(x, axis=a, along=n)
  right y = x
)");
  EXPECT_EQ(layout.judgement, Judgement::refuted);
}

TEST(ProveRule, IsDeterministic) {
  const Rule one = rule(
      "given x[n, I], y[n, I]\n left z = slice(concat(x, y, along=n), along=n, begin=a, end=b)\n"
      "right z = slice(x, along=n, begin=a, end=b)");
  const RuleProof a = prove(one, quick()), b = prove(one, quick());
  EXPECT_EQ(a.verdict.guard, "b <= size(x, n)");
  EXPECT_EQ(a.verdict.guard, b.verdict.guard);
  EXPECT_EQ(a.verdict.shapes, b.verdict.shapes);
}

TEST(DrawInstance, SatisfiesTheGuard) {
  const Rule one = rule(
      "given x[n, I], y[n, I]\n left z = concat(x, y, along=n)\n right z = concat(x, y, along=n)\n"
      "when size(x, n) = size(y, n) + 1 and odd(size(y, n))");
  Random random(1);
  for (int k = 0; k < 20; ++k) {
    const auto instance = draw_instance(one, random);
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    EXPECT_FALSE(instance->refusal);
    const Place place = instance->place(one);
    EXPECT_EQ(evaluate(one.when[0].left, place), evaluate(one.when[0].right, place));
    EXPECT_EQ(*evaluate(one.when[1].left, place) % 2, 1);
  }
}

// Every shipped rule, at one or two shapes; `weft rules prove` tries many.
TEST(ShippedRules, HoldAtTestedShapes) {
  ProveOptions few;
  few.shapes = 1;
  few.max_order_runs = 1;
  few.max_error = 1;
  few.min_real_runs = 0;
  for (const Rule& each : shipped_rules()) {
    const Verdict verdict = prove(each, few).verdict;
    EXPECT_TRUE(holds_everywhere(verdict)) << each.name << " " << verdict.guard << verdict.reason;
  }
}

}  // namespace
}  // namespace weft::rule
