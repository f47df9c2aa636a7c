// Rule text: parsed, printed, and every error with its location.
#include <gtest/gtest.h>

#include "weft/language/complaint.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {
namespace {

Result<std::vector<Rule>> parse(std::string_view text) { return parse_rules(text, "a.rules", ops::all()); }

// The error for a text that must be rejected.
std::string complaint(std::string_view text) {
  const auto rules = parse(text);
  if (rules.ok()) return "accepted";
  EXPECT_TRUE(rules.error().text != nullptr);
  return language::complain(rules.error(), text);
}

constexpr std::string_view kMerge = R"(
guard narrow(n): n <= 4096 and n != 7

rule merge_products explore
  why   one wide product keeps the multipliers busier than two: it's "free"
  cite  TASO, SOSP 2019
  given x[B, K], v[K, n], w[K, m]
  left  p = contract(x, v, to=[B, n])
        q = contract(x, w, to=[B, m])
  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
        p = slice(c, along=n, begin=0, end=size(v, n))
        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
  when  narrow(size(v, n)) and (size(w, m) - 1) * 2 >= -3   # a comment
)";

TEST(ParseRules, ReadsARule) {
  const auto rules = parse(kMerge);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 1u);
  const Rule& rule = (*rules)[0];
  EXPECT_EQ(rule.name, "merge_products");
  EXPECT_EQ(rule.line, 4u);
  EXPECT_EQ(rule.file, "a.rules");
  EXPECT_EQ(rule.kind, Kind::explore);
  EXPECT_EQ(rule.why, "one wide product keeps the multipliers busier than two: it's \"free\"");
  ASSERT_EQ(rule.indices.size(), 4u);
  EXPECT_TRUE(rule.indices[0].many);
  EXPECT_FALSE(rule.indices[2].many);
  ASSERT_EQ(rule.outputs.size(), 2u);
  EXPECT_EQ(rule.left.nodes.size(), 2u);
  EXPECT_EQ(rule.right.nodes.size(), 6u);
  EXPECT_EQ(rule.when.size(), 3u);
  EXPECT_EQ(print(rule.when, rule), "size(v, n) <= 4096 and size(v, n) != 7 and -3 <= (size(w, m) - 1) * 2");
  // Attributes of known length: the last one of the right side is [B, m].
  EXPECT_TRUE(rule.right.has_list.back());
  EXPECT_EQ(rule.right.lists.back(), (IndexList{0, 3}));
}

TEST(ParseRules, PrintsWhatItReads) {
  constexpr std::string_view kTexts[] = {kMerge, R"(
rule tidy.up normalize both ways
  any   unary f, binary g, word k
  given x[b, n, I] in order, y[n] sliced(n) on a, z[I] partial(max) on c, w[] replicated on a
  left  u = g(f(x), y)
        s = reduce(u, kind=k, to=[b])
        t, r = layer-norm(g(x, g(z, w)), over=[I], epsilon=e)
  right u = g(f(x), y)
        s = reduce(u, kind=k, to=[b])
        t, r = layer_norm(g(x, g(z, w)), over=[I], epsilon=e)
  when  divides(ranks(a), size(x, n) % 3) and even(elements(x)) and odd(size(x, I) / 2) and same_dtype(x, y)
        and real(x) and replicated(w) and distinct(b, I) and whole(x, n)
)",
                                         R"(
rule windows explore
  given x[b, c, h, w] in order, v[o, c, r, q] in order
  left  y = conv2d(x, v, stride=s, padding=1)
        z = broadcast(cast(y, to=t), type=[b, o, h, w, m: k, J])
  right u = conv2d(x, v, stride=s, padding=2 - 1)
        y = u
        z = broadcast(cast(u, to=t), type=[b, o, h, w, m: k, J])
)"};
  for (const std::string_view text : kTexts) {
    const auto rules = parse(text);
    ASSERT_TRUE(rules.ok()) << rules.error().message;
    for (const Rule& rule : *rules) {
      auto again = parse(print(rule));
      ASSERT_TRUE(again.ok()) << again.error().message << print(rule);
      (*again)[0].line = rule.line;
      EXPECT_EQ((*again)[0], rule) << print(rule);
    }
  }
}

TEST(ParseRules, BothDirectionsMakeTwoRules) {
  const auto rules = parse(R"(
rule associate explore both ways
  given x[I], y[I], z[I]
  left  s = add(add(x, y), z)
  right s = add(x, add(y, z)))");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[1].name, "associate.reverse");
  EXPECT_EQ((*rules)[1].left.nodes[0].operands, (std::vector<std::uint16_t>{1, 2}));
}

TEST(ParseRules, ShowsTheLocation) {
  EXPECT_EQ(complaint("rule r explore\n  given x[I]\n  left y = rleu(x)\n  right y = x\n"),
            "error 3:12: a.rules: unknown operator: rleu\n"
            "    left y = rleu(x)\n"
            "             ^^^^\n"
            "  did you mean 'relu'?\n");
}

struct Mistake {
  std::string_view rest, says;
};

TEST(ParseRules, RejectsErrors) {
  const Mistake mistakes[] = {
      {"given x[I]\n left y = relu(x)\n right y = add(x, q)", "unbound value: q"},
      {"given x[I], q[I]\n left y = relu(x)\n right y = add(x, q)",
       "unbound input: nothing on the left reads q"},
      {"given x[I]\n left y = relu(x, x)\n right y = x", "relu takes 1 operand, found 2"},
      {"given x[I]\n left y = softmax(x, ovr=[I])\n right y = x", "softmax has no attribute ovr"},
      {"given x[I]\n left y = softmax(x)\n right y = x", "softmax needs the attribute over"},
      {"given x[I]\n left y = softmax(x, over=[J])\n right y = x", "over: index J is not among [I]"},
      {"given x[I]\n left y = slice(x, along=I, begin=a, end=b)\n right y = x", "one index is needed here"},
      {"given x[n]\n left y = slice(x, along=n, begin=a, end=b)\n right y = slice(x, along=n, begin=c, "
       "end=b)",
       "the left side does not bind c"},
      {"given x[n]\n left y = slice(x, along=n, begin=a + c, end=a)\n right y = x",
       "the left side does not bind c"},
      {"given x[n]\n left y = relu(x)\n right y = slice(x, along=m, begin=0, end=1)",
       "the left side has no index m"},
      {"given x[I]\n left y = relu(x)\n z = neg(x)\n right y = x", "z is defined on the left only"},
      {"given x[I]\n left y = relu(x)\n right y = x\n z = neg(x)", "z is defined on the right only"},
      {"given x[I]\n left y = relu(x)\n right z = x", "y is defined on the left only"},
      {"given x[I], y[J]\n left a = relu(x)\n b = relu(y)\n right a = x\n b = y", "is not connected"},
      {"given x[I], x[J]\n left a = add(x, x)\n right a = x", "two inputs are called x"},
      {"given x[n, n]\n left a = relu(x)\n right a = x", "index n appears twice"},
      {"given x[I]\n left y = relu(x)\n y = neg(x)\n right y = x", "two values are called y"},
      {"given x[I, J]\n left y = reduce(x, kind=sum, to=[I])\n right y = relu(x)",
       "y has indices [I] on the left"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when size(x, n) < 1", "can never hold: size(x, n) < 1"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when 3 = 2 + 2", "can never hold: 3 = 2 + 2"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when size(x, n) > 3 and size(x, n) <= 3",
       "can never hold"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when even(size(x, n)) and size(x, n) = 3",
       "can never hold"},
      {"given x[n], y[m]\n left z = add(x, y)\n right z = add(y, x)\n when size(x, m) = 1",
       "x has indices [n]"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when siez(x, n) = 1", "unknown function: siez"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when evn(size(x, n))", "unknown guard: evn"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when size(x) = 1", "size takes 2 arguments, found 1"},
      {"given x[n]\n left y = relu(x)\n right y = x\n when 99999999999999999999 = 1", "number is too large"},
      {"given x[n]\n left y = x\n right y = x", "y is just the input x"},
      {"given x[n]\n left y, z = relu(x)\n right y = x", "relu has 1 result, found 2 names"},
      {"given x[n] sliced(m) on a\n left y = relu(x)\n right y = x", "index m is not among [n]"},
      {"any unary relu\n given x[n]\n left y = relu(x)\n right y = x", "relu is an operator"},
      {"given x[n]\n left y = relu(x)", "rule r has no 'right' part"},
      {"left y = relu(x)\n right y = x", "rule r has no 'given' part"},
      {"given x[n]\n left y = relu(x)\n left z = x\n right y = x", "'left' is given twice"},
      {"given x[n\n left y = relu(x)\n right y = x", "expected ']', found 'left'"},
      {"given x[n]\n left y = mul(x, constant(value=k, dtype=t))\n right y = pad(x, along=n, before=k)",
       "k is a number"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string found = complaint("rule r explore\n " + std::string(mistake.rest) + "\n");
    EXPECT_NE(found.find(mistake.says), found.npos) << mistake.rest << "\n" << found;
    EXPECT_EQ(found.find("error 0"), found.npos);
    EXPECT_NE(found.find('^'), found.npos) << found;
  }
}

TEST(ParseRules, RejectsOtherText) {
  EXPECT_NE(complaint("rule r\n given").find("explore or normalize"), std::string::npos);
  EXPECT_NE(complaint("rool r").find("expected 'rule' or 'guard'"), std::string::npos);
  EXPECT_NE(complaint("\x01").find("byte 1"), std::string::npos);
  EXPECT_NE(complaint("guard g(a): b = 1\n rule r explore given x[n] left y = relu(x) right y = x when g(1)")
                .find("not a parameter of the guard: b"),
            std::string::npos);
  EXPECT_NE(
      complaint("rule r explore both ways\n given x[I], y[I]\n left z = sub(add(x, y), y)\n right z = x")
          .find("cannot be reversed"),
      std::string::npos);
  const std::string twice = "rule r explore given x[n] left y = relu(x) right y = x\n";
  EXPECT_NE(complaint(twice + twice).find("two rules are called r, the first on line 1"), std::string::npos);
}

TEST(ParseRules, SurvivesHostileText) {
  std::string deep = "rule r explore given x[n] left y = ";
  for (int k = 0; k < 100000; ++k) deep += "relu(";
  EXPECT_NE(complaint(deep).find("nested too deeply"), std::string::npos);
  std::string sum = "rule r explore given x[n] left y = relu(x) right y = x when 1";
  for (int k = 0; k < 100000; ++k) sum += "+1";
  EXPECT_NE(complaint(sum).find("nested too deeply"), std::string::npos);
  std::string list = "rule r explore given x[";
  for (int k = 0; k < 1000; ++k) list += "a" + std::to_string(k) + ",";
  EXPECT_NE(complaint(list).find("at most 64"), std::string::npos);
}

TEST(RuleLibrary, NamesBothLocationsOfADuplicate) {
  const EmbeddedFile files[] = {
      {"a.rules", "rule r explore given x[n] left y = relu(relu(x)) right y = relu(x)"},
      {"b.rules", "\nrule r explore given x[n] left y = neg(neg(x)) right y = x"}};
  const auto rules = load_rules(files);
  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.error().message, "two rules are called r: a.rules:1 and b.rules:2");
}

TEST(RuleLibrary, RejectsAGuardWithoutInstances) {
  const EmbeddedFile files[] = {{"a.rules",
                                 "rule r explore given x[n], y[n] left z = add(x, y) right z = add(y, x) "
                                 "when size(x, n) < size(y, n)"}};
  const auto rules = load_rules(files);
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.error().message.find("a.rules:1: no instance of r was found"), std::string::npos)
      << rules.error().message;
}

TEST(RuleLibrary, ShippedRulesHaveReasonsAndCitations) {
  EXPECT_GT(shipped_rules().size(), 200u);
  for (const Rule& rule : shipped_rules()) {
    EXPECT_FALSE(rule.why.empty()) << rule.name;
    EXPECT_FALSE(rule.cite.empty()) << rule.name;
  }
}

}  // namespace
}  // namespace weft::rule
